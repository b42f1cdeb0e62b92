/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells programs how guests' current tasks are read: the maps of bpf/guest_current.bpf.h in the
 * object that they are in, and who has which index in them.
 */
#ifndef VP_COLLECT_PROGRAMS_IDENTITY_H
#define VP_COLLECT_PROGRAMS_IDENTITY_H

#include "base/macros.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_reader.h"

struct bpf_object;

/* Slots of the VM of that number. */
struct vp_identity_range {
	uint32_t number, first, count;
};

/* Where a guest process's interpreter is; `vm`: the VMM's process. */
struct vp_identity_interpreter {
	uint32_t vm, tgid;
	uint64_t low, high;
};

struct vp_identity {
	int vms, vcpus, indices, slots; /* maps */
	/* The same, of programs that read methods; -1: none. */
	int interpreters, interpreter_count;
	VP_VEC(uint32_t) free; /* places that vCPUs had, below … */
	uint32_t used;
	VP_VEC(struct vp_identity_range) ranges; /* of slots, in order */
	VP_VEC(struct vp_identity_interpreter) followed;
};

/* How often the current task was read, or was not, or was in no slot of the VM's memory. */
struct vp_identity_counts {
	uint64_t good, failed, nowhere;
};

/* Finds its maps in a loaded object. */
void vp_identity_init(struct vp_identity *identity, const struct bpf_object *object);
/* Before an object is loaded whose programs do not read guests: its maps take no memory. */
int vp_identity_shrink(const struct bpf_object *object);
void vp_identity_deinit(struct vp_identity *identity);
/* The index that the vCPU has, or a new one. */
struct vp_error *vp_identity_index(struct vp_identity *identity, uint32_t pid, uint32_t vcpu,
				   uint32_t *ret) VP_MUST_CHECK;
/*
 * How the current task of each of the VM's vCPUs is read: no other VM has that number, below
 * VP_IDENTITY_VMS. Errors: more VMs, vCPUs or memory slots than there is room for.
 */
struct vp_error *vp_identity_set(struct vp_identity *identity, uint32_t number,
				 const struct vp_guest_state *state,
				 const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Only the VM's memory slots. */
struct vp_error *vp_identity_set_memory(struct vp_identity *identity, uint32_t number,
					const struct vp_guest_state *state,
					const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* The process's vCPUs give their indices back. */
void vp_identity_forget(struct vp_identity *identity, uint32_t pid);
/* Processes of VM `pid` whose interpreter's methods are read at samples, instead of those of
 * before.
 */
void vp_identity_follow(struct vp_identity *identity, uint32_t pid,
			const vp_guest_runtime_list *now);
/* Whether that address is in the interpreter of that process of VM `pid`. */
bool vp_identity_interprets(const struct vp_identity *identity, uint32_t pid, uint32_t tgid,
			    uint64_t ip);
struct vp_identity_counts vp_identity_counts(const struct vp_identity *identity, uint32_t pid,
					     const struct vp_guest_finding *finding);

#endif
