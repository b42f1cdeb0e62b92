/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtual machine, as the host sees it. */
#ifndef VP_SCHEMA_VM_H
#define VP_SCHEMA_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/agent_outcome.h"
#include "schema/memory_outcome.h"

struct vp_vcpu {
	uint32_t number;
	uint32_t tid;
	bool is_guessed; /* the number is the VMM's own, until a record has KVM's */
	bool has_tsc; /* the next two are known: guest TSC = (host TSC * ratio >> frac) + offset */
	int64_t tsc_offset;
	uint64_t tsc_ratio;
	uint32_t tsc_frac_bits;
	char
	    *pcpus; /* that it may run on, as the kernel lists them ("0-3,8"), or NULL: not known */
};

/* PIDs are below this power of two (PID_MAX_LIMIT of 64-bit kernels). */
enum { VP_PID_BITS = 22, VP_PID_MASK = (1 << VP_PID_BITS) - 1 };

struct vp_vm {
	uint32_t pid;     /* of the VMM's process, as of now */
	uint32_t nth;     /* of the recording's VMs whose process has or had that number, from 0 */
	uint64_t started; /* when the process did, as /proc/PID/stat has it; 0: not known */
	uint32_t fd;      /* of KVM's VM in that process, or 0: not known */
	bool has_domain; /* it is one of Xen's domains and has no process: `pid` is only a number …
			  */
	uint32_t domain; /* … one more than this */
	char *name;
	char *uuid;          /* or "" */
	uint32_t cid;        /* of its vsock device in the host's kernel, or 0 */
	char *vsock;         /* path of its unix socket, if the VMM has one instead, or NULL; while
			      * it is recorded */
	uint64_t start, end; /* when it was first seen, and gone; end 0: still there at the end */
	bool at_start;       /* it ran before the recording did */
	bool has_memory_outcome; /* of reading its memory; false: not attempted, or before 0.3 */
	struct vp_memory_outcome memory_outcome;
	char *memory; /* this as text, or that of a recording before 0.3; "": not attempted */
	vp_agent_outcomes agent_outcomes; /* of the requests to its agent, in the order of time */
	char *agent;      /* these as text, or that of a recording before 0.3; "": not asked */
	char *cgroup;     /* of its VMM: the path below the hierarchy's root, or NULL: not known */
	char *part;       /* vp_vm_part(), once it is settled; or NULL */
	bool is_put_away; /* its guest's symbol map is written; while it is recorded */
	uint64_t guest_events;      /* recorded ones of its guest, which its agent sent … */
	uint64_t guest_events_lost; /* … and those that were lost */
	VP_VEC(struct vp_vcpu) vcpus;
};

typedef VP_VEC(struct vp_vm) vp_vms;

/*
 * The VM's number in the recording, and in the `vm` of its records. It is that of its VMM's
 * process, unless that is or was another VM's, too.
 */
static inline uint32_t vp_vm_id(const struct vp_vm *vm)
{
	return vm->pid | vm->nth << VP_PID_BITS;
}
/* A VM that is known by its number only; it has no texts yet. */
static inline struct vp_vm vp_vm_of_id(uint32_t id)
{
	return (struct vp_vm){.pid = id & VP_PID_MASK, .nth = id >> VP_PID_BITS};
}
/* Whether it is this host itself: Xen's dom0. */
static inline bool vp_vm_is_host(const struct vp_vm *vm)
{
	return vm->has_domain && !vm->domain;
}
/* The VM of that number, or NULL. */
struct vp_vm *vp_vms_find(const vp_vms *vms, uint32_t id);
/* The latest VM of VMM process `pid`, or NULL. */
struct vp_vm *vp_vms_latest(const vp_vms *vms, uint32_t pid);
/* The VM of VMM process `pid` that has thread `tid` as a vCPU, otherwise the latest; VMs that have
 * not ended are preferred. NULL: none. */
struct vp_vm *vp_vms_of_thread(const vp_vms *vms, uint32_t pid, uint32_t tid);
/* The vCPU of that number, added if it is new. */
struct vp_vcpu *vp_vm_vcpu(struct vp_vm *vm, uint32_t number);
/* The host's counter at the moment at which the vCPU's was `guest_tsc`. */
uint64_t vp_vcpu_host_tsc(const struct vp_vcpu *vcpu, uint64_t guest_tsc);
/* The unique name of the VM's part of a recording, to be freed: guest-NAME, or guest-NAME-PID for a
 * second VM of that name. */
char *vp_vm_part(const vp_vms *vms, const struct vp_vm *vm);
/* Settles those of all at once: each by itself takes a look at all before it. */
void vp_vms_settle_parts(vp_vms *vms);
/* Whether the VM has one of the names; with none, every VM has. */
bool vp_vm_is_named(const struct vp_vm *vm, const char *const *names, size_t n_names);
/* An error if there is no VM of one of the names. */
struct vp_error *vp_vms_expect(const vp_vms *vms, const char *const *names,
			       size_t n_names) VP_MUST_CHECK;
/* "process 123" or "domain 4", in `text`. */
const char *vp_vm_location(const struct vp_vm *vm, char text[32]);
/* Adds the outcome, which it takes, and its text. */
void vp_vm_add_agent_outcome(struct vp_vm *vm, const struct vp_agent_outcome *outcome);
/* The same for its memory, in place of an earlier one. */
void vp_vm_set_memory_outcome(struct vp_vm *vm, const struct vp_memory_outcome *outcome);
void vp_vm_deinit(struct vp_vm *vm);
void vp_vms_deinit(vp_vms *vms);

#endif
