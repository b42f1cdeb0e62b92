/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtual machine as seen by the host. */
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
	bool is_guessed; /* the number is the VMM's, until a record has KVM's */
	bool has_tsc; /* the next two are valid: guest TSC = (host TSC * ratio >> frac) + offset */
	int64_t tsc_offset;
	uint64_t tsc_ratio;
	uint32_t tsc_frac_bits;
	char *pcpus; /* pCPUs that it may run on, as a kernel CPU list ("0-3,8"); NULL: unknown */
};

/* PIDs are smaller than this power of two (PID_MAX_LIMIT of 64-bit kernels). */
enum { VP_PID_BITS = 22, VP_PID_MASK = (1 << VP_PID_BITS) - 1 };

struct vp_vm {
	uint32_t pid;     /* present pid of the VMM process */
	uint32_t nth;     /* index among the recording's VMs with that pid, from 0 */
	uint64_t started; /* start time of the process, as in /proc/PID/stat; 0: unknown */
	uint32_t fd;      /* descriptor of KVM's VM in that process; 0: unknown */
	bool has_domain;  /* a Xen domain, which has no process; `pid` is only a number: … */
	uint32_t domain;  /* … the domain's + 1 */
	char *scheduler;  /* … and Xen's scheduler of it ("credit2"); NULL: unknown */
	char *name;
	char *uuid; /* or "" */
	/* From files of its manager; NULL: unknown: name that its owner gave it; id and name of
	 * Nova's project. */
	char *title, *project, *tenant;
	uint32_t cid; /* of its vsock device in the host kernel; 0: none */
	char *vsock;  /* path of its vsock's unix socket, if the VMM implements vsock; or NULL; only
			 while recording */
	uint64_t start, end;     /* first seen and gone; end 0: still running at the end */
	bool at_start;           /* started before the recording */
	bool has_memory_outcome; /* outcome of reading its memory; false: not attempted, or before
				    0.3 */
	struct vp_memory_outcome memory_outcome;
	char *memory; /* the outcome as text, or the text of a recording before 0.3; "": not
			 attempted */
	vp_agent_outcomes agent_outcomes; /* outcomes of requests to its agent, in order of time */
	char *agent;      /* the outcomes as text, or the text of a recording before 0.3; "": not
			     requested */
	char *cgroup;     /* cgroup of its VMM, relative to the hierarchy's root; NULL: unknown */
	char *part;       /* vp_vm_part(), once assigned; or NULL */
	bool is_put_away; /* only while recording: the guest's symbol map has been written */
	uint64_t guest_events;      /* recorded guest events from its agent … */
	uint64_t guest_events_lost; /* … and lost ones */
	VP_VEC(struct vp_vcpu) vcpus;
};

typedef VP_VEC(struct vp_vm) vp_vms;

/* The VM's number in the recording, and in `vm` of its records: the pid of its VMM process, unless
 * another VM has or had that pid. */
static inline uint32_t vp_vm_id(const struct vp_vm *vm)
{
	return vm->pid | vm->nth << VP_PID_BITS;
}
/* A VM of which only the number is known. */
static inline struct vp_vm vp_vm_of_id(uint32_t id)
{
	return (struct vp_vm){.pid = id & VP_PID_MASK, .nth = id >> VP_PID_BITS};
}
/* Whether it is the host itself: Xen's dom0. */
static inline bool vp_vm_is_host(const struct vp_vm *vm)
{
	return vm->has_domain && !vm->domain;
}
/* The VM with that number, or NULL. */
struct vp_vm *vp_vms_find(const vp_vms *vms, uint32_t id);
/* The latest VM of VMM process `pid`, or NULL. */
struct vp_vm *vp_vms_latest(const vp_vms *vms, uint32_t pid);
/* The VM of VMM process `pid` with vCPU thread `tid`, otherwise the latest; running VMs are
 * preferred. NULL: none. */
struct vp_vm *vp_vms_of_thread(const vp_vms *vms, uint32_t pid, uint32_t tid);
/* The vCPU with that number, added if new. */
struct vp_vcpu *vp_vm_vcpu(struct vp_vm *vm, uint32_t number);
/* The host's TSC when the vCPU's TSC was `guest_tsc`. */
uint64_t vp_vcpu_host_tsc(const struct vp_vcpu *vcpu, uint64_t guest_tsc);
/* Unique name of the VM's part of a recording, to be freed: guest-NAME, or guest-NAME-PID for a
 * second VM of that name. */
char *vp_vm_part(const vp_vms *vms, const struct vp_vm *vm);
/* Assigns the names of all parts at once: one by one, each call compares with all VMs before it. */
void vp_vms_settle_parts(vp_vms *vms);
/* Whether the VM has one of the names; true without names. */
bool vp_vm_is_named(const struct vp_vm *vm, const char *const *names, size_t n_names);
/* Errors: no VM has one of the names. */
struct vp_error *vp_vms_expect(const vp_vms *vms, const char *const *names,
			       size_t n_names) VP_MUST_CHECK;
/* Formats "process 123" or "domain 4" in `text`. */
const char *vp_vm_location(const struct vp_vm *vm, char text[32]);
/* Adds an outcome, taking it over, and its text. */
void vp_vm_add_agent_outcome(struct vp_vm *vm, const struct vp_agent_outcome *outcome);
/* Sets the outcome for its memory, replacing an earlier one. */
void vp_vm_set_memory_outcome(struct vp_vm *vm, const struct vp_memory_outcome *outcome);
void vp_vm_deinit(struct vp_vm *vm);
void vp_vms_deinit(vp_vms *vms);

#endif
