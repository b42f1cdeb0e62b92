/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of sampler.bpf.c: state of the thread's vCPU. */
#ifndef VP_BPF_SAMPLER_VCPU_H
#define VP_BPF_SAMPLER_VCPU_H

#include "bpf/arch.bpf.h"
#include "bpf/guest_visit.bpf.h"
#include "bpf/kvm_arm.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/last_exit.bpf.h"
#include "bpf/sampler_abi.h"
#include "schema/records.h"

/* Set by the loader: read current tasks from guest memory; enum vp_seen_by. */
const volatile __u32 by_memory = 0;
const volatile __u32 seen_by = VP_SEEN_BY_PERF;
/* Set by the loader: on 64-bit Arm, the range of kvm_arch_vcpu_ioctl_run(). */
const volatile __u64 run_begin = 0, run_end = 0;

/* State of the vCPU of a thread inside KVM_RUN. */
struct vcpu_regs {
	__u32 exit_reason;
	__u32 flags; /* enum vp_flag */
	__u32 cpl;
	__u64 as_root;
	__u64 ip;
};

/* State in the VMCB: the last exit; for a guest sample also RIP and CR3. */
static __always_inline void read_vmcb(struct kvm_vcpu *vcpu, const struct vmcb_view *vmcb,
				      __u32 reason, bool with_rip, struct vcpu_regs *ret)
{
	struct vmcb_regs saved;

	ret->exit_reason = reason;
	ret->flags |= VP_HAS_EXIT_REASON;
	if (!with_rip || !read_guest_regs(vcpu, vmcb, &saved, &ret->cpl))
		return;
	ret->as_root = saved.cr3;
	ret->ip = saved.rip;
	ret->flags |= VP_HAS_AS_ROOT | VP_HAS_CPL;
}

/*
 * The same for Intel, where the guest's page-table root is only in guest memory: see
 * read_guest_current(). An interrupt that hit the guest belongs to this pCPU's last exit, whose
 * event was recorded.
 */
static __always_inline void read_vmx(struct kvm_vcpu *vcpu, bool hit, bool with_rip,
				     struct vcpu_regs *ret)
{
	struct vp_last_exit *now = hit ? this_cpu_last_exit() : 0;

	if (now && now->known) {
		ret->exit_reason = now->reason;
		ret->ip = now->rip;
		ret->cpl = vmx_cpl(vcpu, ret->ip);
		ret->flags = VP_HAS_EXIT_REASON | VP_HAS_CPL;
		return;
	}
	if (read_vmx_exit_reason(vcpu, &ret->exit_reason))
		ret->flags = VP_HAS_EXIT_REASON;
	if (with_rip && read_vmx_rip(vcpu, &ret->ip)) {
		ret->cpl = vmx_cpl(vcpu, ret->ip);
		ret->flags |= VP_HAS_CPL;
	}
}

/* The same for Arm. The exit reason is only in the event. */
static __always_inline void read_arm(struct kvm_vcpu *vcpu, struct vcpu_regs *ret)
{
	struct arm_regs saved;

	if (!read_arm_regs(vcpu, &saved))
		return;
	ret->ip = saved.pc;
	ret->cpl = arm_cpl(saved.pstate);
	ret->flags = VP_HAS_CPL;
}

static __always_inline void read_vcpu(struct kvm_vcpu *vcpu, bool with_rip, struct vcpu_regs *ret)
{
	struct vmcb_view vmcb = {.at = vendor == VP_VENDOR_AMD ? vmcb_of(vcpu) : 0};
	__u64 reason;

	*ret = (struct vcpu_regs){};
	/* By perf: in an NMI, KVM may not have read RIP yet. */
	if (vendor == VP_VENDOR_ARM)
		read_arm(vcpu, ret);
	else if (read_vmx_exit_reason(vcpu, &ret->exit_reason))
		ret->flags = VP_HAS_EXIT_REASON;
	else if (read_vmcb_reason(vmcb.at, &reason))
		read_vmcb(vcpu, &vmcb, reason, with_rip, ret);
}

/* The same for the vCPU of the previous sample; `hit`: the interrupt hit its guest. */
static __always_inline void read_vcpu_again(struct vp_ring *ring, struct kvm_vcpu *vcpu, bool hit,
					    bool with_rip, struct vcpu_regs *ret)
{
	struct vmcb_view vmcb;
	__u64 reason;

	*ret = (struct vcpu_regs){};
	if (vendor == VP_VENDOR_ARM)
		read_arm(vcpu, ret);
	else if (vendor == VP_VENDOR_INTEL)
		read_vmx(vcpu, hit, with_rip, ret);
	else if (read_exit_reason(vcpu, &ring->last_vmcb, &reason, &vmcb))
		read_vmcb(vcpu, &vmcb, reason, with_rip, ret);
}

static __always_inline __u32 vcpu_number(struct kvm_vcpu *vcpu)
{
	return vcpu ? BPF_CORE_READ(vcpu, vcpu_id) & VP_VCPU_UNKNOWN : VP_VCPU_UNKNOWN;
}

/* Number of the vCPU, cached from the previous sample. */
static __always_inline __u32 number_in_ring(struct vp_ring *ring, void *notifier,
					    struct kvm_vcpu *vcpu)
{
	if (ring->last_notifier != (__u64)notifier) {
		ring->last_notifier = (__u64)notifier;
		ring->last_vmcb.vmcb = 0;
		ring->last_vcpu = vcpu_number(vcpu);
	}
	return ring->last_vcpu;
}

/*
 * Whether KVM attributes the interrupt to the guest. It receives those at one instruction (Intel:
 * or calls their handlers at another), where its marker is always set: once seen, the marker need
 * not be read again.
 */
static __always_inline bool hit_by_mark(struct vp_ring *ring, struct kvm_vcpu *vcpu, __u64 ip)
{
	if (ring->hit_ip == ip)
		return true;
	if (!interrupt_hit_guest(vcpu, seen_by == VP_SEEN_BY_NMI ? KVM_MARK_NMI : KVM_MARK_IRQ))
		return false;
	ring->hit_ip = ip;
	return true;
}

/* A64 instructions; MSR DAIFSet and DAIFClr without the changed bits, MRS DAIF and MOV W1 without
 * the other register. */
enum { A64_OPERAND = 0xf00, A64_REGISTER = 0x1f, A64_SOURCE = A64_REGISTER << 16 };
static const __u32 a64_isb = 0xd5033fdf, a64_set = 0xd50340df, a64_clear = 0xd50340ff,
		   a64_read_daif = 0xd53b4220, a64_move_to_w1 = 0x2a0003e1;

/*
 * Arm: since kvm_arm_vcpu_enter_exit() exists, KVM receives the interrupt that ended the guest's
 * run at one instruction sequence: it unmasks interrupts, synchronizes, and masks them again. After
 * other exits it does not. So an interrupt at that RIP hit the guest, or came while the host was
 * about to enter it with interrupts masked.
 */
static __always_inline bool is_after_guest(__u64 ip)
{
	enum { BEFORE = 4, WORDS = 12 };
	__u32 code[WORDS];
	bool unmasked = false, synchronized = false, masked = false;

	if (ip < run_begin + sizeof(code) || ip >= run_end ||
	    bpf_probe_read_kernel(code, sizeof(code), (void *)(ip - BEFORE * sizeof(*code))))
		return false;
#pragma unroll
	for (int i = 0; i < WORDS; i++) {
		/* Instructions in between are for other processors, and have no effect here. */
		if (i < BEFORE + 1 && (code[i] & ~A64_OPERAND) == a64_clear)
			unmasked = true;
		else if (unmasked && i >= BEFORE - 2 && i <= BEFORE + 2 && code[i] == a64_isb)
			synchronized = true;
		else if (synchronized && i >= BEFORE && (code[i] & ~A64_OPERAND) == a64_set)
			masked = true;
	}
	return masked;
}

/* The register of that number: one that calls preserve. */
static __always_inline __u64 preserved_register(const bpf_user_pt_regs_t *regs, __u32 number)
{
	__u64 value = 0;

#if defined(__TARGET_ARCH_arm64)
#pragma unroll
	for (int i = 19; i <= 28; i++) {
		/* Each is read: the verifier rejects a chosen address. */
		__u64 read = *(volatile const __u64 *)&regs->regs[i];
		if (number == i)
			value = read;
	}
#endif
	return value;
}

/*
 * Earlier KVM unmasks interrupts once, after all exits, and then ends the guest's time with
 * interrupts saved and masked (guest_exit()). *number: the register with the exit's code, from
 * which it is passed to handle_exit_early(vcpu, code); 0: not recognized.
 */
static __always_inline bool is_after_exit(__u64 ip, __u32 *number)
{
	enum { BEFORE = 2, NEAR = BEFORE + 2, WORDS = 24 };
	bool unmasked = false, saved = false;

	*number = 0;
	if (ip < run_begin + WORDS * sizeof(__u32) || ip >= run_end)
		return false;
#pragma unroll
	for (int i = 0; i < WORDS; i++) {
		__u32 word = 0; /* not all at once: the stack is too small */

		bpf_probe_read_kernel(&word, sizeof(word), (void *)(ip + 4 * (i - BEFORE)));
		if (i < BEFORE && (word & ~A64_OPERAND) == a64_clear)
			unmasked = true;
		else if (unmasked && i >= BEFORE && i < NEAR &&
			 (word & ~A64_REGISTER) == a64_read_daif)
			saved = true;
		else if (saved && !*number && (word & ~A64_SOURCE) == a64_move_to_w1)
			*number = word >> 16 & A64_REGISTER;
	}
	return saved;
}

/* Whether that interrupt ended the guest's run: if the exit's code is that of another exit, it came
 * afterwards. The place is cached after the first check. */
static __always_inline bool ended_run(const bpf_user_pt_regs_t *regs)
{
	enum { EXCEPTION_IRQ = 0, EXCEPTION_CODE = 0xf };
	struct vp_ring *ring = ring_here();
	__u64 ip = PT_REGS_IP(regs);

	if (!ring)
		return false;
	if (ring->hit_ip != ip) {
		__u32 number;
		if (!is_after_exit(ip, &number))
			return false;
		ring->hit_ip = ip;
		ring->hit_register = number;
	}
	return (preserved_register(regs, ring->hit_register) & EXCEPTION_CODE) == EXCEPTION_IRQ;
}

/* The address is cached after the first check. */
static __always_inline bool hit_by_rip(struct vp_ring *ring, __u64 ip)
{
	if (ring->hit_ip == ip)
		return true;
	if (!is_after_guest(ip))
		return false;
	ring->hit_ip = ip;
	return true;
}

/*
 * Whether the interrupt hit the guest, or may have: one that became pending while the host handled
 * an exit arrives at the same instruction, with the same marker. On Intel, KVM calls the handler of
 * the exit's interrupt itself, with interrupts off; interrupts that it then enables belong to the
 * host.
 */
static __always_inline bool may_have_hit_guest(struct vp_ring *ring, struct kvm_vcpu *vcpu,
					       const bpf_user_pt_regs_t *regs)
{
	if (vendor == VP_VENDOR_ARM)
		return hit_by_rip(ring, PT_REGS_IP(regs));
	if (vendor == VP_VENDOR_INTEL && regs_interrupts_enabled(regs))
		return false;
	return hit_by_mark(ring, vcpu, PT_REGS_IP(regs));
}

/*
 * On AMD the exit reason distinguishes them, except for a second interrupt right after the first.
 * An NMI after an exit for something else arrives at the same instruction as an NMI that caused the
 * exit. On Arm, interrupts that were pending at the entry hit the host.
 */
static __always_inline bool exit_was_by_interrupt(const struct vcpu_regs *words)
{
	if (vendor == VP_VENDOR_ARM)
		return !(words->flags & VP_HAS_CPL) || !left_at_once(words->ip);
	if (seen_by == VP_SEEN_BY_NMI)
		return words->flags & VP_HAS_EXIT_REASON && words->exit_reason == AMD_NMI;
	return vendor != VP_VENDOR_AMD || !(words->flags & VP_HAS_EXIT_REASON) ||
	       (words->exit_reason >= AMD_INTR && words->exit_reason <= AMD_SMI);
}

#endif
