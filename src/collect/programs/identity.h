/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configures how BPF programs read guests' current tasks: fills the maps of bpf/guest_current.bpf.h
 * in their object, and manages the indices of vCPUs in them. */
#ifndef VP_COLLECT_PROGRAMS_IDENTITY_H
#define VP_COLLECT_PROGRAMS_IDENTITY_H

#include "base/macros.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_reader.h"

struct bpf_object;

/* Memory slots of the VM with that number. */
struct vp_identity_range {
	uint32_t number, first, count;
};

/* Interpreter of a guest process; `vm`: pid of the VMM. */
struct vp_identity_interpreter {
	uint32_t vm, id; /* the process's pid, or the tid of one of its threads */
	bool is_thread;
	uint64_t low, high, second_low, second_high; /* equal: none */
};

struct vp_identity {
	int vms, vcpus, indices, slots; /* descriptors of maps */
	/* Maps of programs that read methods; -1: none. */
	int interpreters, interpreter_count, threads;
	VP_VEC(uint32_t) free; /* freed indices of vCPUs, below … */
	uint32_t used;
	VP_VEC(struct vp_identity_range) ranges; /* sorted ranges of slots */
	uint32_t revision;                       /* of all VMs' slots */
	VP_VEC(struct vp_identity_interpreter) followed;
};

/* Number of reads of the current task: successful, failed, outside the VM's slots. */
struct vp_identity_counts {
	uint64_t good, failed, nowhere;
};

/* Finds the maps in a loaded object. */
void vp_identity_init(struct vp_identity *identity, const struct bpf_object *object);
/* Before loading an object whose programs do not read guests: minimizes its maps. */
int vp_identity_shrink(const struct bpf_object *object);
void vp_identity_deinit(struct vp_identity *identity);
/* The index of the vCPU, allocated if new. */
struct vp_error *vp_identity_index(struct vp_identity *identity, uint32_t pid, uint32_t vcpu,
				   uint32_t *ret) VP_MUST_CHECK;
/* Sets how the current task of each of the VM's vCPUs is read. The number must be unique and below
 * VP_IDENTITY_VMS. Errors: too many VMs, vCPUs or memory slots. */
struct vp_error *vp_identity_set(struct vp_identity *identity, uint32_t number,
				 const struct vp_guest_state *state,
				 const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Updates the VM's memory slots only. */
struct vp_error *vp_identity_set_memory(struct vp_identity *identity, uint32_t number,
					const struct vp_guest_state *state,
					const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Frees the indices of the process's vCPUs. */
void vp_identity_forget(struct vp_identity *identity, uint32_t pid);
/* Sets the processes of VM `pid` whose interpreted methods are read at samples, replacing the
 * previous ones. */
void vp_identity_follow(struct vp_identity *identity, uint32_t pid,
			const vp_guest_runtime_list *now);
/* Whether that address is in the interpreter of that process of VM `pid`. */
bool vp_identity_interprets(const struct vp_identity *identity, uint32_t pid, uint32_t tgid,
			    uint64_t ip);
struct vp_identity_counts vp_identity_counts(const struct vp_identity *identity, uint32_t pid,
					     const struct vp_guest_finding *finding);

#endif
