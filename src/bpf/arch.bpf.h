/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processor-specific parts of perf event programs. */
#ifndef VP_BPF_ARCH_H
#define VP_BPF_ARCH_H

#include <linux/bpf_perf_event.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

/* Whether the event hit user space. */
static __always_inline bool regs_are_user(const bpf_user_pt_regs_t *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->cs & 3;
#elif defined(__TARGET_ARCH_arm64)
	return !(regs->pstate & 0xf);    /* PSR_MODE_MASK: EL0 */
#else
#error "where is the mode in this processor's registers?"
#endif
}

/* Whether interrupts were enabled where the event hit. */
static __always_inline bool regs_interrupts_enabled(const bpf_user_pt_regs_t *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->eflags & 1 << 9; /* IF */
#else
	return !(regs->pstate & 1 << 7); /* PSTATE.I */
#endif
}

/* Store with release order: earlier stores become visible first. x86 keeps the order of stores. */
static __always_inline void store_after(__u64 *at, __u64 value)
{
#if defined(__TARGET_ARCH_x86)
	barrier();
	*(volatile __u64 *)at = value;
#else
	__sync_lock_test_and_set(at, value);
#endif
}

#endif
