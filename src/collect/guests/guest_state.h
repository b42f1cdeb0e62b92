/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory slots and vCPU registers of each VM, read from KVM. */
#ifndef VP_COLLECT_GUESTS_GUEST_STATE_H
#define VP_COLLECT_GUESTS_GUEST_STATE_H

#include "base/macros.h"
#include "base/vec.h"
#include "guestmem/memory.h"
#include "schema/vm.h"

/* Offset of a vCPU's counter to the host's, if KVM has it in its memory. */
struct vp_guest_counter {
	uint32_t vcpu;
	uint64_t offset;
};

struct vp_guest_state {
	uint32_t pid;             /* of the VMM */
	uint64_t started;         /* when, as /proc/PID/stat has it; 0: not known */
	const char *protected_by; /* its memory is kept from the host: nobody touches it; or NULL */
	uint64_t generation;      /* of its memory slots, as KVM counts their changes */
	uint64_t detail;          /* what struct vp_guest_access needs to know again */
	struct vp_guest_memory memory; /* its slots; nothing reads it yet */
	VP_VEC(struct vp_guest_registers) vcpus;
	VP_VEC(struct vp_guest_counter) counters; /* 64-bit Arm */
};
typedef VP_VEC(struct vp_guest_state) vp_guest_states;

struct vp_guest_lister;

/* Loads the program that lists them; needs root. */
struct vp_error *vp_guest_lister_new(struct vp_guest_lister **ret) VP_MUST_CHECK;
void vp_guest_lister_free(struct vp_guest_lister *lister);
/* The VM of process `pid`; without slots if its memory is protected. Errors: the process has ended,
 * KVM does not show its memory slots, or there are more of them than are looked at. */
struct vp_error *vp_guest_lister_read_one(struct vp_guest_lister *lister, uint32_t pid,
					  vp_guest_states *states) VP_MUST_CHECK;
/* How far each of the VM's counters is from the host's: 64-bit Arm, where debugfs does not have
 * it. */
struct vp_error *vp_guest_lister_read_counters(struct vp_guest_lister *lister,
					       struct vp_vm *vm) VP_MUST_CHECK;
/* An error if the process with that pid is not the one any more that had it before the listing. */
struct vp_error *vp_guest_state_expect_same(const struct vp_guest_state *state) VP_MUST_CHECK;
/* An error if its memory is kept from the host: reading it would yield nothing, and of a protected
 * VM of pKVM end it; writing would break it. */
struct vp_error *vp_guest_state_expect_open(const struct vp_guest_state *state) VP_MUST_CHECK;
/* Where in the VMM's memory that word of the guest is, 8 bytes; 0: nowhere. */
uint64_t vp_guest_state_hva(const struct vp_guest_state *state, uint64_t gpa);
void vp_guest_state_deinit(struct vp_guest_state *state);
void vp_guest_states_deinit(vp_guest_states *states);

#endif
