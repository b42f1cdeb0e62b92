/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exact vCPU accounting: every change of a vCPU's state charges the time since the last one to the
 * previous state. Totals are in maps that user space reads at any time; nothing is sent to it.
 *
 * kvm_entry and kvm_exit are the hot path: one lookup of the pCPU's vCPU, one clock reading, one
 * addition. If only an interrupt hit the guest between two entries (usually the host's tick or a
 * sample), the time is noted per pCPU without access to the vCPU, and charged at the second
 * entry. A vCPU's entry in `vcpus` is written by its own pCPU or under its run-queue lock.
 * Programs that interrupt another one (in interrupts, or in the scheduler where tracepoints are
 * preemptible) do not modify an entry that is marked busy. */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/account_exit.bpf.h"
#include "bpf/account_irq.bpf.h"
#include "bpf/account_wait.bpf.h"
#include "bpf/exit_detail.bpf.h"
#include "bpf/guest_current.bpf.h"

/* Set by the loader: call exit_hook() and entry_hook() at exits and entries. */
const volatile __u32 notifies_freplace = 0;
/* … read the page-table root of an exit from guest memory. */
const volatile __u32 by_memory = 0;
/* … count an interrupt that hits the guest together with its exit: see note_hit(). Not with
 * --account-events, or if other programs use exit_hook(). */
const volatile __u32 counts_hits = 0;

/* Replaced by programs of another data source (freplace, intervals.bpf.c), so that an exit runs
 * one set of programs and reads the clock once. Arguments: those of kvm_exit, the reason if
 * known, and the time. */
__noinline int exit_hook(__u64 first, __u64 second, __u32 reason, __u64 now)
{
	/* Otherwise the compiler drops the unused arguments and the call. */
	asm volatile("" ::"r"(first), "r"(second), "r"(reason), "r"(now));
	return 0;
}

__noinline int entry_hook(__u64 now)
{
	asm volatile("" ::"r"(now));
	return 0;
}

static __always_inline void account_set_busy(struct vp_account_vcpu *vcpu, __u32 busy)
{
	barrier();
	*(volatile __u32 *)&vcpu->busy = busy;
	barrier();
}

/* Slot of the vCPU that runs here, if the pCPU's cached one is wrong or missing. `known`: its
 * struct kvm_vcpu, or 0. */
__noinline __u32 account_find_vcpu(__u64 known)
{
	struct kvm_vcpu *kvm = (void *)known;
	struct vp_account_here *here = this_here();
	__u64 id = bpf_get_current_pid_tgid();
	__u32 slot = find_slot((__u32)id);

	changeable(here);
	here->hit = here->hit_reason = here->untimed = 0;
	if (!slot)
		slot = make_slot((__u32)id, id >> 32, bpf_ktime_get_ns());
	struct vp_account_vcpu *vcpu = slot ? vcpu_at(slot) : 0;
	if (!vcpu)
		return 0;
	end_missed_wait(vcpu, slot, bpf_ktime_get_ns());
	if (!kvm && vendor == VP_VENDOR_ARM)
		kvm = vcpu_of_notifier(kvm_notifier_of_task((void *)bpf_get_current_task()));
	here->vcpu = slot;
	here->tid = (__u32)id;
	if (kvm) {
		vcpu->kvm_vcpu = (__u64)kvm;
		vcpu->vmcb.vmcb = 0;
		if (bpf_core_type_exists(struct kvm_vcpu)) {
			vcpu->number = BPF_CORE_READ(kvm, vcpu_id);
			vcpu->flags |= VP_NUMBER_KNOWN;
		}
	}
	return slot;
}

/* The vCPU that runs here; its slot is in here->vcpu. */
static __always_inline struct vp_account_vcpu *running(struct kvm_vcpu *kvm,
						       struct vp_account_here *here)
{
	struct vp_account_vcpu *vcpu = here->vcpu ? vcpu_at(here->vcpu) : 0;

	if (vcpu && (vcpu->kvm_vcpu == (__u64)kvm || !kvm))
		return vcpu;
	__u32 slot = account_find_vcpu((__u64)kvm);
	return slot ? vcpu_at(slot) : 0;
}

/* Marks the entry busy: an interrupting program either finds consistent totals, or does not
 * modify the entry. */
static __always_inline void begin_change(struct vp_account_here *here, struct vp_account_vcpu *vcpu)
{
	here->in_guest = 0;
	account_set_busy(vcpu, 1);
	end_untimed_hit(here, vcpu);
	if (here->hit)
		count_hit(here, vcpu);
}

/* Counts a memory access by block, larger than a page, since guests touch memory page by page. */
static __always_inline void note_block(struct vp_account_vcpu *vcpu, __u64 address)
{
	vcpu->address = address == VP_NO_ADDRESS ? VP_NO_ADDRESS : address & ~(VP_MEMORY_BLOCK - 1);
}

static __always_inline void note_detail(struct vp_account_vcpu *vcpu,
					const struct exit_detail *detail)
{
	vcpu->detail_kind = detail->kind;
	vcpu->detail = detail->number;
	note_block(vcpu, detail->address);
}

static __always_inline void note_amd(struct vp_account_vcpu *vcpu)
{
	struct exit_detail detail;
	struct vmcb_regs slot;
	struct vmcb_view vmcb;
	__u64 code;

	if (!read_exit_reason((struct kvm_vcpu *)vcpu->kvm_vcpu, &vcpu->vmcb, &code, &vmcb))
		return;
	vcpu->reason = (__u32)code;
	/* Guest code did not cause the exit: the guest RIP is meaningless. */
	if (vcpu->reason >= AMD_INTR && vcpu->reason <= AMD_SMI)
		return;
	if (!read_vmcb_regs(&vmcb, &slot))
		return;
	detail_of_amd((struct kvm_vcpu *)vcpu->kvm_vcpu, &vmcb, vcpu->reason, &detail);
	note_detail(vcpu, &detail);
	vcpu->ip = slot.rip;
	vcpu->cr3 = slot.cr3;
	vcpu->flags |= VP_RIP_KNOWN;
}

/* From KVM's event of this exit, or from KVM's struct. */
static __always_inline bool read_intel(struct kvm_vcpu *kvm, __u32 *reason, __u64 *ip,
				       struct exit_detail *detail)
{
	struct vp_last_exit *now = this_cpu_last_exit();

	*detail = (struct exit_detail){.address = VP_NO_ADDRESS};
	if (!now || !now->known)
		return read_vmx_exit_reason(kvm, reason) && read_vmx_rip(kvm, ip);
	*reason = now->reason;
	*ip = now->rip;
	detail_of_intel(kvm, now, detail);
	return true;
}

/* Page-table root (guest physical address) of the current task, or 0. Read again if the task or
 * its mm has changed, otherwise only after the time in which both are certainly the same. */
static __noinline __u64 root_at_exit(struct vp_account_vcpu *vcpu)
{
	if (!vcpu)
		return 0;
	__u32 memo = vcpu->guest_index;
	struct vp_identity_vcpu *guest = find_identity(vcpu->pid, vcpu->number, &memo);
	if (!guest || !root_is_in_memory(guest))
		return 0;
	vcpu->guest_index = memo;
	__u64 before = guest->task, now = vcpu->since;
	if (!find_task(guest) || !read_mm(guest)) {
		guest->failed++;
		return 0;
	}
	guest->good++;
	bool same = before == guest->task && now - guest->root_read < SURELY_SAME_NS;
	return root_by_memory(guest, same, now);
}

/* Without CR3, which is only in the VMCS. */
static __always_inline void note_intel(struct vp_account_vcpu *vcpu)
{
	struct exit_detail detail;

	if (!read_intel((struct kvm_vcpu *)vcpu->kvm_vcpu, &vcpu->reason, &vcpu->ip, &detail))
		return;
	__u32 basic = vcpu->reason & 0xffff; /* upper bits are flags */
	if (basic == VMX_EXTERNAL_INTERRUPT || basic == VMX_PREEMPTION_TIMER)
		return;
	note_detail(vcpu, &detail);
	vcpu->cr3 = by_memory ? root_at_exit(vcpu) : 0;
	vcpu->flags |= VP_RIP_KNOWN;
}

/* v5.17, 0a62a0319abb "KVM: x86: Get error code from get_exit_info" and related commits removed
 * the reason before the vCPU. A kernel pointer is negative, a reason is not. */
static __always_inline void note_x86(struct vp_account_vcpu *vcpu, __u64 first)
{
	vcpu->reason = VP_REASON_MISSING;
	if (vendor == VP_VENDOR_AMD)
		note_amd(vcpu);
	else
		note_intel(vcpu);
	if ((__s64)first >= 0)
		vcpu->reason = (__u32)first;
	vcpu->flags |= VP_REASON_KNOWN;
}

/* An exit that was not in state GUEST: an interrupt came first, or it is the vCPU's first event. */
static __noinline int note_late_exit(struct vp_account_vcpu *vcpu, __u32 slot, __u64 now)
{
	if (!vcpu)
		return 0;
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_GUEST;
	if (vcpu->state == VP_STATE_GUEST) {
		leave_guest(vcpu, now);
		return 0;
	}
	charge(vcpu, now);
	if (vcpu->flags & VP_EXIT_OPEN && !(vcpu->flags & VP_REASON_KNOWN))
		return 0;
	/* An entry without kvm_entry: ends the previous exit. */
	if (vcpu->flags & VP_EXIT_OPEN)
		finish_exit(vcpu, slot, vcpu->since);
	clear_exit(vcpu);
	vcpu->exit_at = vcpu->since;
	vcpu->flags |= VP_EXIT_OPEN;
	return 0;
}

/* Reason from KVM's exit code and Arm's exception class: see VP_ARM_NO_TRAP. */
static __always_inline __u32 arm_reason(__u64 code, __u64 class)
{
	enum { TRAP = 2 };

	return (code & 0xf) == TRAP ? class & 0x3f : VP_ARM_NO_TRAP | (code & 0xf);
}

/* kvm_exit(code, exception class, program counter) */
static __always_inline void note_arm(struct vp_account_vcpu *vcpu,
				     struct bpf_raw_tracepoint_args *context)
{
	vcpu->reason = arm_reason(context->args[0], context->args[1]);
	vcpu->flags |= VP_REASON_KNOWN;
	if (vcpu->reason & VP_ARM_NO_TRAP)
		return;
	vcpu->ip = context->args[2];
	vcpu->detail_kind = vcpu->detail = 0;
	vcpu->address = VP_NO_ADDRESS;
	vcpu->cr3 = by_memory ? root_at_exit(vcpu) : 0;
	vcpu->flags |= VP_RIP_KNOWN;
}

static __always_inline void note_reason(struct vp_account_vcpu *vcpu,
					struct bpf_raw_tracepoint_args *context, __u64 first)
{
	if (vendor == VP_VENDOR_ARM)
		note_arm(vcpu, context);
	else
		note_x86(vcpu, first);
}

/* Starts an exit, unless an earlier event already did. `at`: the time if it is known, or 0. */
static __always_inline void begin_exit(struct vp_account_vcpu *vcpu, __u32 slot, __u64 at)
{
	const __u32 whole = VP_EXIT_OPEN | VP_REASON_KNOWN;

	/* A host interrupt came first: the time since then already counts as KERNEL. */
	if (vcpu->state == VP_STATE_KERNEL && (vcpu->flags & whole) == VP_EXIT_OPEN)
		return;
	__u64 now = end_of_visit(vcpu->since, at ? at : bpf_ktime_get_ns());
	__u64 passed = now - vcpu->since;
	if (vcpu->state != VP_STATE_GUEST || (__s64)passed < 0) {
		note_late_exit(vcpu, slot, now);
		return;
	}
	vcpu->states[VP_STATE_GUEST] += passed;
	emit_state(vcpu, VP_STATE_GUEST, 0, passed, now);
	vcpu->since = vcpu->exit_at = now;
	vcpu->state = VP_STATE_KERNEL;
	vcpu->flags |= VP_EXIT_OPEN;
}

/* Reason of an exit for an interrupt, or 0: another exit, or the VMCB is unknown or not that of
 * the entry. */
static __always_inline __u32 reason_of_interrupt(const struct vp_account_here *here,
						 const struct bpf_raw_tracepoint_args *context)
{
	if (vendor == VP_VENDOR_ARM) {
		__u32 reason = arm_reason(context->args[0], context->args[1]);
		return here->in_guest && reason == VP_ARM_NO_TRAP ? reason : 0;
	}
	struct vmcb *vmcb = loaded_vmcb(here->in_guest);
	__u32 reason = vmcb ? LOAD_VMCB(vmcb, __u32, VMCB_EXIT_CODE) : 0;
	return reason >= AMD_INTR && reason <= AMD_SMI ? reason : 0;
}

/* Whether the exit was only for the interrupt that end_hard() has noted; it is then counted at
 * the entry. */
static __always_inline bool is_exit_of_hit(struct vp_account_here *here,
					   const struct bpf_raw_tracepoint_args *context)
{
	if (!(here->hit | here->untimed) || here->hit_reason)
		return false;
	here->hit_reason = reason_of_interrupt(here, context);
	return here->hit_reason;
}

/* Arm: the loader chooses the function. */
SEC("?fentry/kvm_vgic_sync_hwstate")
int note_left(void *context)
{
	if (enabled)
		note_left_guest();
	return 0;
}

/* False: the vCPU is not accounted. On Arm, KVM reports an exit long after it. If it will be timed,
 * the clock is read first there: what this program does is not added to the guest's time. */
static __always_inline bool account_exit(struct bpf_raw_tracepoint_args *context, __u32 *reason,
					 __u64 *now)
{
	struct vp_account_here *here = this_here();
	bool is_timed = vendor == VP_VENDOR_ARM && enabled && (!samples_exits || here->times_next);
	__u64 at = is_timed ? bpf_ktime_get_ns() : 0;

	if (vendor == VP_VENDOR_ARM && enabled)
		learn_switches(context->args[0], context->args[2]);
	if (!enabled || is_exit_of_hit(here, context))
		return false;
	__u64 first = context->args[0];
	void *kvm = (void *)((__s64)first < 0 ? first : context->args[1]);
	/* Arm's tracepoints do not name the vCPU. */
	struct vp_account_vcpu *vcpu = running(vendor == VP_VENDOR_ARM ? 0 : kvm, here);
	if (!vcpu)
		return false;
	begin_change(here, vcpu);
	bool early = samples_exits && vcpu->state == VP_STATE_GUEST;
	if (early) {
		/* An entry without kvm_entry. */
		if (vcpu->flags & VP_EXIT_UNTIMED)
			end_untimed(vcpu, here->vcpu);
		note_reason(vcpu, context, first);
		if (leave_untimed(vcpu, here->vcpu, &here->times_next)) {
			account_set_busy(vcpu, 0);
			return true;
		}
	}
	begin_exit(vcpu, here->vcpu, at);
	here->times_next = 1;
	if (!early)
		note_reason(vcpu, context, first);
	*reason = vcpu->reason;
	*now = vcpu->since;
	account_set_busy(vcpu, 0);
	return true;
}

SEC("raw_tp/kvm_exit")
int note_exit(struct bpf_raw_tracepoint_args *context)
{
	__u32 reason = VP_REASON_MISSING;
	__u64 now;
	bool known = account_exit(context, &reason, &now);

	if (notifies_freplace)
		exit_hook(context->args[0], context->args[1], reason,
			  known ? now : bpf_ktime_get_ns());
	return 0;
}

/* The vCPU for which KVM handles a memory access, or 0. */
static __always_inline struct vp_account_vcpu *at_memory(void)
{
	const __u32 known = VP_EXIT_OPEN | VP_REASON_KNOWN | VP_RIP_KNOWN;
	struct vp_account_here *here = this_here();
	struct vp_account_vcpu *vcpu = enabled ? running(0, here) : 0;

	if (!vcpu || (vcpu->flags & known) != known)
		return 0;
	__u32 basic = vcpu->reason & 0xffff;
	bool memory = vendor == VP_VENDOR_AMD
			  ? vcpu->reason == AMD_NPF
			  : basic == VMX_EPT_VIOLATION || basic == VMX_EPT_MISCONFIG;
	return memory ? vcpu : 0;
}

/* Intel: KVM has read the address of an EPT violation. v6.0, faa03b39722a "KVM: Add extra
 * information in kvm_page_fault trace point" inserted the vCPU before it. A kernel pointer is
 * negative, an address is not. */
SEC("raw_tp/kvm_page_fault")
int note_fault(struct bpf_raw_tracepoint_args *context)
{
	struct vp_account_vcpu *vcpu = at_memory();
	__u64 first = context->args[0];

	if (vcpu)
		note_block(vcpu, (__s64)first < 0 ? context->args[1] : first);
	return 0;
}

/* Turns a memory access into a device access. An instruction may access a device more than once. */
static __always_inline void note_device(__u32 kind, __u64 address)
{
	struct vp_account_vcpu *vcpu = at_memory();

	if (!vcpu || vcpu->detail_kind == VP_DETAIL_MMIO_READ ||
	    vcpu->detail_kind == VP_DETAIL_MMIO_WRITE)
		return;
	vcpu->detail_kind = kind;
	vcpu->address = address;
}

/* kvm_mmio(type, length, address, value) */
SEC("raw_tp/kvm_mmio")
int note_mmio(struct bpf_raw_tracepoint_args *context)
{
	enum { WRITE = 2 }; /* KVM_TRACE_MMIO_WRITE; lower values are reads */

	note_device((__u32)context->args[0] == WRITE ? VP_DETAIL_MMIO_WRITE : VP_DETAIL_MMIO_READ,
		    context->args[2]);
	return 0;
}

/* Intel: a write whose value KVM does not read, usually a virtio notification. */
SEC("raw_tp/kvm_fast_mmio")
int note_fast_mmio(struct bpf_raw_tracepoint_args *context)
{
	note_device(VP_DETAIL_MMIO_WRITE, context->args[0]);
	return 0;
}

static __noinline int note_slow_entry(struct vp_account_vcpu *vcpu, __u32 slot, __u64 now)
{
	if (!vcpu)
		return 0;
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_KERNEL;
	charge(vcpu, now);
	return 0;
}

/* The vCPU that the noted interrupt hit, if KVM enters that one. Arm's event does not name it:
 * until the thread leaves the pCPU, it is that thread's. */
static __always_inline struct vp_account_vcpu *vcpu_of_hit(const struct vp_account_here *here,
							   __u64 kvm)
{
	struct vp_account_vcpu *vcpu = vcpu_at(here->vcpu);

	return vcpu && (vendor == VP_VENDOR_ARM || vcpu->kvm_vcpu == kvm) ? vcpu : 0;
}

/* Charges an exit that was only for an interrupt: guest, interrupt and host kernel. KVM enters
 * guests with interrupts off, so no program runs in between. */
static __always_inline bool account_hit(struct vp_account_here *here, __u64 kvm, __u64 now)
{
	__u32 reason = here->hit_reason, slot = here->vcpu, source = here->hit - 1;
	struct vp_account_vcpu *vcpu = vcpu_of_hit(here, kvm);

	if (!vcpu)
		return false;
	__u64 at = here->hit_at, end = here->hit_end, left = end_of_visit(vcpu->since, at);
	__u64 guest = left - vcpu->since, irq = end - at, kernel = now - end + at - left;
	if ((__s64)(guest | irq | kernel) < 0)
		return false;
	here->hit = here->hit_reason = 0;
	vcpu->states[VP_STATE_GUEST] += guest;
	vcpu->states[VP_STATE_IRQ] += irq;
	vcpu->states[VP_STATE_KERNEL] += kernel;
	vcpu->since = now;
	add_irq(vcpu, source, irq);
	struct vp_account_exit *exit = count_exit(vcpu, slot, reason, now - left);
	if (!exit)
		return true;
	exit->stolen += irq;
	if (samples_exits)
		weigh_hit(vcpu, exit, source, irq, kernel);
	if (samples_exits) {
		here->hit_skip = exit->skip;
		exit->skip = 0;
		/* Another untimed interrupt preceded this one. */
		if (here->untimed)
			count_untimed_irq(here, vcpu);
	}
	return true;
}

/* Counts an untimed exit that was only for an interrupt. */
static __always_inline bool count_untimed_hit(struct vp_account_here *here, __u64 kvm)
{
	struct vp_account_vcpu *vcpu = vcpu_of_hit(here, kvm);

	if (!vcpu)
		return false;
	struct vp_account_exit *exit = row_of(vcpu, here->vcpu, here->hit_reason);
	if (!exit || !here->untimed)
		return false;
	exit->count++;
	exit->untimed++;
	vcpu->exits++;
	here->hit_reason = 0;
	count_untimed_irq(here, vcpu);
	return true;
}

/* From now on, an interrupt hits the guest. */
static __always_inline void expect_hit(struct vp_account_here *here,
				       const struct vp_account_vcpu *vcpu)
{
	if (counts_hits)
		here->in_guest = vendor == VP_VENDOR_ARM ? 1 : vcpu->vmcb.vmcb;
}

/* Returns the time of the entry. On Arm the clock is read late: what this program does before is
 * not the guest's time. A vCPU that is not known here yet begins with the entry. */
static __always_inline __u64 account_entry(struct bpf_raw_tracepoint_args *context)
{
	const __u32 whole = VP_EXIT_OPEN | VP_REASON_KNOWN;
	void *kvm = vendor == VP_VENDOR_ARM ? 0 : (void *)context->args[0];
	struct vp_account_here *here = this_here();
	bool late = vendor == VP_VENDOR_ARM && here->vcpu && !here->hit_reason;
	__u64 now = late ? 0 : bpf_ktime_get_ns();

	if (here->hit && here->hit_reason && account_hit(here, (__u64)kvm, now))
		return now;
	struct vp_account_vcpu *vcpu = running(kvm, here);
	if (!vcpu)
		return late ? bpf_ktime_get_ns() : now;
	__u32 slot = here->vcpu;
	begin_change(here, vcpu);
	if (late)
		now = bpf_ktime_get_ns();
	__u64 passed = now - vcpu->since;
	if (vcpu->state == VP_STATE_KERNEL && (__s64)passed >= 0) {
		vcpu->states[VP_STATE_KERNEL] += passed;
		vcpu->since = now;
		emit_state(vcpu, VP_STATE_KERNEL, 0, passed, now);
	} else {
		note_slow_entry(vcpu, slot, now);
	}
	if (samples_exits && vcpu->flags & VP_EXIT_UNTIMED)
		finish_untimed(vcpu, slot);
	else if ((vcpu->flags & whole) == whole)
		finish_exit(vcpu, slot, vcpu->since);
	clear_exit(vcpu);
	vcpu->state = VP_STATE_GUEST;
	account_set_busy(vcpu, 0);
	expect_hit(here, vcpu);
	return now;
}

/* Ends an untimed exit without further events: only its exit site is counted. KVM enters guests
 * with interrupts off. */
static __always_inline bool enter_untimed(struct bpf_raw_tracepoint_args *context)
{
	struct vp_account_here *here = this_here();

	if (here->hit_reason)
		return !here->hit && count_untimed_hit(here, context->args[0]);
	struct vp_account_vcpu *vcpu = here->vcpu ? vcpu_at(here->vcpu) : 0;
	if (!vcpu || !(vcpu->flags & VP_EXIT_UNTIMED) || vcpu->flags & VP_EXIT_SPLIT ||
	    vcpu->state != VP_STATE_GUEST || vcpu->parts[VP_STATE_IRQ])
		return false;
	if (vendor != VP_VENDOR_ARM && vcpu->kvm_vcpu != context->args[0])
		return false;
	if (vcpu->flags & VP_RIP_KNOWN)
		count_untimed_site(vcpu, here->vcpu, 0);
	vcpu->flags &= ~VP_EXIT_FLAGS;
	expect_hit(here, vcpu);
	return true;
}

SEC("raw_tp/kvm_entry")
int note_entry(struct bpf_raw_tracepoint_args *context)
{
	__u32 counts = enabled;

	if (!counts && !notifies_freplace)
		return 0;
	if (counts && samples_exits && enter_untimed(context)) {
		if (vendor == VP_VENDOR_ARM)
			note_entered(context->args[0], 0);
		return 0;
	}
	__u64 now = counts ? account_entry(context) : bpf_ktime_get_ns();
	if (notifies_freplace)
		entry_hook(now);
	if (counts && vendor == VP_VENDOR_ARM)
		note_entered(context->args[0], now);
	return 0;
}

SEC("raw_tp/kvm_userspace_exit")
int note_vmm(struct bpf_raw_tracepoint_args *context)
{
	struct vp_account_here *here = this_here();
	struct vp_account_vcpu *vcpu = enabled ? running(0, here) : 0;

	if (!vcpu)
		return 0;
	begin_change(here, vcpu);
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_KERNEL;
	charge(vcpu, bpf_ktime_get_ns());
	vcpu->state = VP_STATE_VMM;
	account_set_busy(vcpu, 0);
	return 0;
}

/* KVM reports the duration of a halt. The part without sleep was polling, charged to KERNEL
 * until now, or, if KVM did not poll, the way to the scheduler. */
SEC("raw_tp/kvm_vcpu_wakeup")
int note_poll(struct bpf_raw_tracepoint_args *context)
{
	__u64 ns = context->args[0], others = 0;
	bool slept = context->args[1] & 1;
	struct vp_account_here *here = this_here();
	struct vp_account_vcpu *vcpu = enabled ? running(0, here) : 0;

	if (!vcpu)
		return 0;
	begin_change(here, vcpu);
	charge(vcpu, bpf_ktime_get_ns());
	if (vcpu->flags & VP_EXIT_OPEN && vcpu->state == VP_STATE_KERNEL &&
	    !(vcpu->flags & VP_POLLS_NOT)) {
#pragma unroll
		for (int i = 0; i < VP_STATES; i++)
			others += vcpu->parts[i];
		__u64 kernel = vcpu->since - vcpu->exit_at - others;
		__u64 sleep =
		    slept && vcpu->flags & VP_BLOCKED_ONCE ? vcpu->since - vcpu->block_at : 0;
		ns = ns > sleep ? ns - sleep : 0;
		ns = ns > kernel ? kernel : ns;
		vcpu->states[VP_STATE_KERNEL] -= ns;
		vcpu->states[VP_STATE_POLL] += ns;
		emit_state(vcpu, VP_STATE_POLL, VP_STATE_MOVED, ns, vcpu->since);
		vcpu->parts[VP_STATE_POLL] += ns;
		vcpu->flags |= VP_EXIT_SPLIT;
		vcpu->polls += ns > 0;
		vcpu->poll_wasted += slept ? ns : 0;
	}
	vcpu->flags &= ~VP_POLLS_NOT;
	if (polls_not((void *)vcpu->kvm_vcpu))
		vcpu->flags |= VP_POLLS_NOT;
	account_set_busy(vcpu, 0);
	return 0;
}

/* Charges the interrupted state up to the start of the interrupt. */
static __always_inline void end_hit_state(struct vp_account_vcpu *vcpu, __u64 irq_at)
{
	if (vcpu->state == VP_STATE_UNKNOWN)
		vcpu->state = VP_STATE_GUEST;
	if (vcpu->state == VP_STATE_GUEST) {
		stop_guest(vcpu, irq_at);
		return;
	}
	__u64 passed = charge(vcpu, irq_at);
	if (vcpu->state == VP_STATE_IRQ)
		vcpu->irq_ns[(vcpu->soft - 1) & (VP_IRQ_SOURCES - 1)] += passed;
}

/* Row of an interrupt that hits the guest, or VP_IRQ_SOURCES: it is counted at its end. */
static __always_inline __u32 row_of_hit(const struct vp_account_here *here, __u32 source)
{
	if (source < VP_IRQ_SOURCES)
		return source;
	struct vp_account_vcpu *vcpu = vendor == VP_VENDOR_ARM ? vcpu_at(here->vcpu) : 0;
	return vcpu ? find_irq_row(vcpu, source) : VP_IRQ_SOURCES;
}

/* Whether the interrupt hits the guest and is counted without being timed. */
static __always_inline bool skip_hit(struct vp_account_here *here, __u32 source)
{
	if (!here->hit_skip || !here->in_guest || here->hit | here->hit_reason | here->untimed)
		return false;
	__u32 row = row_of_hit(here, source);
	if (row >= VP_IRQ_SOURCES)
		return false;
	here->hit_skip--;
	here->irq_source = 0;
	here->untimed = row + 1;
	return true;
}

/* A hard interrupt. Only the start time is noted at its start; all else is done at its end. The
 * vCPU's entry does not change in between, as interrupts are masked. With --account-events, the
 * span before it is emitted at once: a span of another pCPU may follow. */
static __always_inline void begin_hard(__u32 source)
{
	struct vp_account_here *here = this_here();

	if (!here->vcpu || (samples_exits && skip_hit(here, source)))
		return;
	here->irq_source = source + 1;
	here->irq_at = bpf_ktime_get_ns();
	struct vp_account_vcpu *vcpu = emit_states ? changeable(here) : 0;
	if (vcpu)
		end_hit_state(vcpu, here->irq_at);
}

static __always_inline void count_irq(struct vp_account_vcpu *vcpu, __u32 slot, __u32 source,
				      __u64 passed)
{
	__u32 row = assign_irq_row(vcpu, source);

	if (row < VP_IRQ_SOURCES)
		add_irq(vcpu, row, passed);
	else
		add_thief(slot, VP_BY_DEVICE, VP_STATE_IRQ, source - VP_IRQ_DEVICE, passed);
}

/* An interrupt that hit the guest is noted: the next program counts it. */
static __always_inline bool note_hit(struct vp_account_here *here, __u32 source)
{
	if (!here->in_guest || here->hit | here->hit_reason)
		return false;
	__u32 row = row_of_hit(here, source);
	if (row >= VP_IRQ_SOURCES)
		return false;
	here->hit_at = here->irq_at;
	here->hit_end = bpf_ktime_get_ns();
	here->hit = row + 1;
	return true;
}

static __always_inline void end_hard(__u32 source)
{
	struct vp_account_here *here = this_here();

	if (here->irq_source != source + 1)
		return;
	here->irq_source = 0;
	if (note_hit(here, source))
		return;
	struct vp_account_vcpu *vcpu = changeable(here);
	if (!vcpu)
		return;
	end_hit_state(vcpu, here->irq_at);
	count_irq(vcpu, here->vcpu, source, charge_irq(vcpu, bpf_ktime_get_ns()));
}

/* A softirq: hard interrupts may come in between, other programs do not run. */
static __always_inline void begin_soft(__u32 source)
{
	struct vp_account_here *here = this_here();
	struct vp_account_vcpu *vcpu = changeable(here);

	if (!vcpu || vcpu->soft)
		return;
	account_set_busy(vcpu, 1); /* against hard interrupts */
	end_hit_state(vcpu, bpf_ktime_get_ns());
	vcpu->base = vcpu->state;
	vcpu->soft = source + 1;
	vcpu->state = VP_STATE_IRQ;
	account_set_busy(vcpu, 0);
}

static __always_inline void end_soft(__u32 source)
{
	struct vp_account_here *here = this_here();
	struct vp_account_vcpu *vcpu = changeable(here);

	if (!vcpu || vcpu->soft != source + 1)
		return;
	account_set_busy(vcpu, 1);
	count_irq(vcpu, here->vcpu, source, charge(vcpu, bpf_ktime_get_ns()));
	vcpu->soft = 0;
	vcpu->state = vcpu->base;
	account_set_busy(vcpu, 0);
}

#define VECTOR(name, source)                                                                       \
	SEC("raw_tp/" #name "_entry") int begin_##name(void *context)                              \
	{                                                                                          \
		begin_hard(source);                                                                \
		return 0;                                                                          \
	}                                                                                          \
	SEC("raw_tp/" #name "_exit") int end_##name(void *context)                                 \
	{                                                                                          \
		end_hard(source);                                                                  \
		return 0;                                                                          \
	}

/* Arm's are device interrupts. */
#if defined(__TARGET_ARCH_x86)
VECTOR(local_timer, VP_IRQ_LOCAL_TIMER)
VECTOR(reschedule, VP_IRQ_RESCHEDULE)
VECTOR(call_function, VP_IRQ_CALL_FUNCTION)
VECTOR(call_function_single, VP_IRQ_CALL_FUNCTION_SINGLE)
VECTOR(irq_work, VP_IRQ_WORK)
#endif

SEC("raw_tp/irq_handler_entry") int begin_device(struct bpf_raw_tracepoint_args *context)
{
	begin_hard(VP_IRQ_DEVICE + ((__u32)context->args[0] & 0xffff));
	return 0;
}

SEC("raw_tp/irq_handler_exit") int end_device(struct bpf_raw_tracepoint_args *context)
{
	end_hard(VP_IRQ_DEVICE + ((__u32)context->args[0] & 0xffff));
	return 0;
}

SEC("raw_tp/softirq_entry") int begin_softirq(struct bpf_raw_tracepoint_args *context)
{
	begin_soft((__u32)context->args[0] & (VP_IRQ_SOURCES - 1));
	return 0;
}

SEC("raw_tp/softirq_exit") int end_softirq(struct bpf_raw_tracepoint_args *context)
{
	end_soft((__u32)context->args[0] & (VP_IRQ_SOURCES - 1));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
