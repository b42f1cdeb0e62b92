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
	leave_guest(vcpu, bpf_ktime_get_ns());
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
