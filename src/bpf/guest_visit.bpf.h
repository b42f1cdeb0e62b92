/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 64-bit Arm: when a guest was entered and left. KVM's event of an entry comes before the switch to
 * the guest, its event of an exit long after the switch back. The code in between is the host's,
 * but looks like the guest's, in the account and in samples: interrupts are masked from before the
 * entry until after the exit, and one that is pending at the entry ends guest mode at once. Such a
 * visit, without an instruction of the guest, shows what the switches take.
 */
#ifndef VP_BPF_GUEST_VISIT_H
#define VP_BPF_GUEST_VISIT_H

#include <stdbool.h>

#include "bpf/kvm_compat.bpf.h"
#include "bpf/last_exit.bpf.h"
#include "schema/records.h"

enum {
	VP_LONGEST_SWITCHES_NS = 5000, /* longer visits have instructions of the guest */
	VP_SWITCHES_VARY_NS = 200,
	VP_INSTRUCTION =
	    4 /* bytes; KVM skips one that it has emulated after its event of the entry */
};

/* Called by KVM first after guest mode, with interrupts masked: the loader chooses the function.
 * Before Linux 6.4, BPF programs cannot be attached to such functions. */
static __always_inline void note_left_guest(void)
{
	struct vp_last_exit *last = this_cpu_last_exit();

	if (last)
		last->left_at = bpf_ktime_get_ns();
}

/* At the end of the program at KVM's event of an entry. `counted`: the time of the entry in the
 * account, or 0: it is not timed. */
static __always_inline void note_entered(__u64 pc, __u64 counted)
{
	struct vp_last_exit *last = this_cpu_last_exit();

	if (!last)
		return;
	last->entered_at = bpf_ktime_get_ns();
	last->late_ns = counted ? last->entered_at - counted : 0;
	last->entry_pc = pc;
}

static __always_inline bool is_same_place(const struct vp_last_exit *last, __u64 pc)
{
	return pc - last->entry_pc <= VP_INSTRUCTION;
}

/* At KVM's event of an exit, with the exit's code and the guest's program counter. */
static __always_inline void learn_switches(__u64 code, __u64 pc)
{
	enum { EXCEPTION_IRQ = 0, EXCEPTION_CODE = 0xf };
	struct vp_last_exit *last = this_cpu_last_exit();

	if (!last || last->left_at <= last->entered_at)
		return;
	__u64 passed = last->left_at - last->entered_at;
	__u64 shortest = last->switches ? last->switches : VP_LONGEST_SWITCHES_NS;
	if ((code & EXCEPTION_CODE) == EXCEPTION_IRQ && is_same_place(last, pc) &&
	    passed < shortest)
		last->switches = passed;
}

/* When a visit ended that began at `since`, at the latest `now`: without the switches, if known,
 * and without the account's own time at the entry. */
static __always_inline __u64 end_of_visit(__u64 since, __u64 now)
{
	struct vp_last_exit *last = vendor == VP_VENDOR_ARM ? this_cpu_last_exit() : 0;

	if (!last || last->left_at <= last->entered_at)
		return now;
	__u64 end = last->left_at - last->switches - last->late_ns;
	if ((__s64)(end - since) < 0)
		end = since;
	return (__s64)(now - end) > 0 ? end : now;
}

/* Whether the guest was left before its first instruction. */
static __always_inline bool left_at_once(__u64 pc)
{
	struct vp_last_exit *last = this_cpu_last_exit();

	return last && last->switches && last->left_at > last->entered_at &&
	       is_same_place(last, pc) &&
	       last->left_at - last->entered_at <= last->switches + VP_SWITCHES_VARY_NS;
}

#endif
