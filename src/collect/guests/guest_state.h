/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory slots and vCPU registers of each VM, read from KVM. */
#ifndef VP_COLLECT_GUESTS_GUEST_STATE_H
#define VP_COLLECT_GUESTS_GUEST_STATE_H

#include "base/macros.h"
#include "base/vec.h"
#include "guestmem/memory/memory.h"
#include "schema/vm.h"

/* Offset between a vCPU's counter and the host's, read from KVM's memory. */
struct vp_guest_counter {
	uint32_t vcpu;
	uint64_t offset;
};

struct vp_guest_state {
	uint32_t pid;             /* of the VMM */
	uint64_t started;         /* start time, as in /proc/PID/stat; 0: unknown */
	const char *protected_by; /* memory is protected from the host and must not be accessed: the
				     mechanism's name; or NULL */
	uint64_t generation;      /* of the memory slots, from KVM */
	uint64_t detail;          /* for struct vp_guest_access */
	struct vp_guest_memory memory; /* memory slots; no read function yet */
	VP_VEC(struct vp_guest_registers) vcpus;
	VP_VEC(struct vp_guest_counter) counters; /* 64-bit Arm */
};
typedef VP_VEC(struct vp_guest_state) vp_guest_states;

struct vp_guest_lister;

/* Loads the BPF program that lists them; needs root. */
struct vp_error *vp_guest_lister_new(struct vp_guest_lister **ret) VP_MUST_CHECK;
void vp_guest_lister_free(struct vp_guest_lister *lister);
/* The VM of process `pid`; without slots if its memory is protected. Errors: the process has ended,
 * KVM does not show its memory slots, or there are too many. */
struct vp_error *vp_guest_lister_read_one(struct vp_guest_lister *lister, uint32_t pid,
					  vp_guest_states *states) VP_MUST_CHECK;
/* Offsets of the VM's counters to the host's: for 64-bit Arm, where debugfs lacks them. */
struct vp_error *vp_guest_lister_read_counters(struct vp_guest_lister *lister,
					       struct vp_vm *vm) VP_MUST_CHECK;
/* Errors: the pid was reused by another process since the listing. */
struct vp_error *vp_guest_state_expect_same(const struct vp_guest_state *state) VP_MUST_CHECK;
/* Errors: memory is protected from the host. Reads would return nothing useful, and would kill a
 * protected VM of pKVM; writes would corrupt it. */
struct vp_error *vp_guest_state_expect_open(const struct vp_guest_state *state) VP_MUST_CHECK;
/* Address in the VMM of that 8-byte word of the guest; 0: none. */
uint64_t vp_guest_state_hva(const struct vp_guest_state *state, uint64_t gpa);
void vp_guest_state_deinit(struct vp_guest_state *state);
void vp_guest_states_deinit(vp_guest_states *states);

#endif
