/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtual machine, as the host sees it. */
#ifndef VP_SCHEMA_VM_H
#define VP_SCHEMA_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

struct vp_vcpu {
	uint32_t number;
	uint32_t tid;
	bool has_tsc; /* the next two are known: guest TSC = (host TSC * ratio >> frac) + offset */
	int64_t tsc_offset;
	uint64_t tsc_ratio;
	uint32_t tsc_frac_bits;
};

struct vp_vm {
	uint32_t pid; /* of the VMM's process: the VM's identity in the records */
	char *name;
	char *uuid;          /* or "" */
	uint32_t cid;        /* of its vsock device, or 0 */
	uint64_t start, end; /* when it was first seen, and gone; end 0: still there at the end */
	bool at_start;       /* it ran before the recording did */
	char
	    *memory; /* outcome of reading its memory: "ok: …", or a sentence, or "" if not tried */
	char *agent; /* outcome of asking its agent: "ok", or a sentence, or "" if not asked */
	VP_VEC(struct vp_vcpu) vcpus;
};

typedef VP_VEC(struct vp_vm) vp_vms;

struct vp_vm *vp_vms_find(const vp_vms *vms, uint32_t pid);
/* The vCPU of that number, added if it is new. */
struct vp_vcpu *vp_vm_vcpu(struct vp_vm *vm, uint32_t number);
/* Name of the VM's part of a recording: guest-NAME, or guest-NAME-PID for a second VM of that name.
 */
char *vp_vm_part(const vp_vms *vms, const struct vp_vm *vm);
/* Whether the VM has one of the names; with none, every VM has. */
bool vp_vm_is_named(const struct vp_vm *vm, const char *const *names, size_t n_names);
/* An error if there is no VM of one of the names. */
struct vp_error *vp_vms_expect(const vp_vms *vms, const char *const *names,
			       size_t n_names) VP_MUST_CHECK;
void vp_vms_deinit(vp_vms *vms);

#endif
