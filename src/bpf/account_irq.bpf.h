/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of account.bpf.c: time of interrupts, charged to the interrupted vCPU. */
#ifndef VP_BPF_ACCOUNT_IRQ_H
#define VP_BPF_ACCOUNT_IRQ_H

#include "bpf/account_state.bpf.h"

/* Charges the time up to now to the interrupt, independent of the vCPU's state. */
static __always_inline __u64 charge_irq(struct vp_account_vcpu *vcpu, __u64 now)
{
	__u64 passed = now - vcpu->since;

	if ((__s64)passed <= 0)
		return 0;
	vcpu->states[VP_STATE_IRQ] += passed;
	vcpu->since = now;
	emit_state(vcpu, VP_STATE_IRQ, 0, passed, now);
	if (vcpu->flags & VP_EXIT_OPEN)
		vcpu->parts[VP_STATE_IRQ] += passed;
	return passed;
}

static __always_inline void add_irq(struct vp_account_vcpu *vcpu, __u32 source, __u64 passed)
{
	vcpu->irq_ns[source & (VP_IRQ_SOURCES - 1)] += passed;
	vcpu->irq_count[source & (VP_IRQ_SOURCES - 1)]++;
}

/* Row of the vCPU's counters for an interrupt source, or VP_IRQ_SOURCES if it has none. Arm's hard
 * interrupts are those of devices. The first devices of a vCPU have the rows of x86's vectors. */
static __always_inline __u32 find_irq_row(const struct vp_account_vcpu *vcpu, __u32 source)
{
	if (source < VP_IRQ_SOURCES || vendor != VP_VENDOR_ARM)
		return source < VP_IRQ_SOURCES ? source : VP_IRQ_SOURCES;
#pragma unroll
	for (__u32 row = VP_IRQ_LOCAL_TIMER; row < VP_IRQ_SOURCES; row++)
		if (vcpu->irq_device[row] == source)
			return row;
	return VP_IRQ_SOURCES;
}

/* The same; a device without a row gets a free one. */
static __always_inline __u32 assign_irq_row(struct vp_account_vcpu *vcpu, __u32 source)
{
	__u32 known = find_irq_row(vcpu, source);

	if (known < VP_IRQ_SOURCES || vendor != VP_VENDOR_ARM)
		return known;
#pragma unroll
	for (__u32 row = VP_IRQ_LOCAL_TIMER; row < VP_IRQ_SOURCES; row++)
		if (!vcpu->irq_device[row]) {
			vcpu->irq_device[row] = source;
			return row;
		}
	return VP_IRQ_SOURCES;
}

/* Counts an exit for an interrupt that has ended (note_hit()). */
static __always_inline void count_hit(struct vp_account_here *here, struct vp_account_vcpu *vcpu)
{
	__u32 source = here->hit - 1;

	here->hit = 0;
	leave_guest(vcpu, here->hit_at);
	add_irq(vcpu, source, charge_irq(vcpu, here->hit_end));
	if (!here->hit_reason)
		return;
	vcpu->reason = here->hit_reason;
	vcpu->flags |= VP_REASON_KNOWN;
	here->hit_reason = 0;
}

/* An untimed exit for an interrupt lasts longer than the interrupt: starts timing it. */
static __noinline int time_hit_late(struct vp_account_here *here, struct vp_account_vcpu *vcpu)
{
	if (!here || !vcpu)
		return 0;
	end_guest(vcpu, bpf_ktime_get_ns());
	vcpu->reason = here->hit_reason;
	vcpu->flags |= VP_REASON_KNOWN;
	here->hit_reason = 0;
	return 0;
}

static __always_inline void count_untimed_irq(struct vp_account_here *here,
					      struct vp_account_vcpu *vcpu)
{
	__u32 source = (here->untimed - 1) & (VP_IRQ_SOURCES - 1);

	here->untimed = 0;
	vcpu->irq_count[source]++;
	vcpu->irq_untimed[source]++;
}

static __always_inline void end_untimed_hit(struct vp_account_here *here,
					    struct vp_account_vcpu *vcpu)
{
	if (!samples_exits)
		return;
	if (here->untimed)
		count_untimed_irq(here, vcpu);
	if (here->hit_reason && !here->hit)
		time_hit_late(here, vcpu);
}

static __noinline int count_hit_late(struct vp_account_here *here, struct vp_account_vcpu *vcpu)
{
	if (here && vcpu)
		count_hit(here, vcpu);
	return 0;
}

/* The vCPU interrupted on this pCPU, if it may be modified now. */
static __always_inline struct vp_account_vcpu *changeable(struct vp_account_here *here)
{
	struct vp_account_vcpu *vcpu = here->vcpu && enabled ? vcpu_at(here->vcpu) : 0;

	if (!vcpu || vcpu->busy || vcpu->flags & VP_SWITCH_IGNORED)
		return 0;
	here->in_guest = 0;
	end_untimed_hit(here, vcpu);
	if (here->hit)
		count_hit_late(here, vcpu);
	return vcpu;
}

#endif
