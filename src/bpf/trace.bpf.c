/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes events as records of schema/trace_records.h to each pCPU's ring. Programs do not filter
 * or format. A record's time is read before space is reserved, so records of an interrupting
 * program may precede it in the ring. */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/account_abi.h"
#include "bpf/exit_detail.bpf.h"
#include "bpf/sched_compat.bpf.h"
#include "bpf/trace_guest.bpf.h"

#define WHOLE(event, last)                                                                         \
	_Static_assert(__builtin_offsetof(struct vp_trace_##event, last) +                         \
			       sizeof(((struct vp_trace_##event *)0)->last) ==                     \
			   VP_TRACE_SIZE_##event,                                                  \
		       "order the fields of " #event " by size")
WHOLE(guest_switch, switch_flags);
WHOLE(sched_switch, preempted);
WHOLE(sched_wakeup, target_cpu);
WHOLE(kvm_entry, vcpu);
WHOLE(kvm_exit, detail_kind);
WHOLE(kvm_inj_virq, vector);
WHOLE(irq_handler_entry, irq);
WHOLE(softirq_entry, vec);
WHOLE(local_timer_entry, vector);

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct vp_trace_cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	name_task(cpu, prev);
	name_task(cpu, next);
	PUT(cpu, sched_switch, .prev_tid = prev->pid, .next_tid = next->pid,
	    .prev_state = (__u16)task_state(prev), .preempted = preempted);
	return 0;
}

#define WAKEUP(event)                                                                              \
	SEC("tp_btf/" #event) int BPF_PROG(event, struct task_struct *task)                        \
	{                                                                                          \
		struct vp_trace_cpu *cpu = this_cpu();                                             \
		__u64 id = bpf_get_current_pid_tgid();                                             \
                                                                                                   \
		if (!cpu)                                                                          \
			return 0;                                                                  \
		name_task(cpu, task);                                                              \
		name_current(cpu, id);                                                             \
		PUT(cpu, event, .tid = (__u32)id, .woken_tid = task->pid,                          \
		    .target_cpu = (__u16)task_cpu(task));                                          \
		return 0;                                                                          \
	}

WAKEUP(sched_wakeup)
WAKEUP(sched_wakeup_new)

/* Looks up the thread's vCPU, which is not the cached one, and caches it. */
static __noinline __u32 trace_find_vcpu(struct vp_trace_cpu *cpu, struct kvm_vcpu *kvm, __u32 tid)
{
	if (!cpu)
		return VP_VCPU_UNKNOWN;
	void *notifier = kvm ? 0 : kvm_notifier_of_task((void *)bpf_get_current_task());
	if (notifier)
		kvm = vcpu_of_notifier(notifier);
	if (!kvm || !bpf_core_type_exists(struct kvm_vcpu))
		return VP_VCPU_UNKNOWN;
	__u32 number = BPF_CORE_READ(kvm, vcpu_id);
	*(volatile __u64 *)&cpu->kvm_vcpu = 0;
	*(volatile __u32 *)&cpu->vcpu = number;
	*(volatile __u32 *)&cpu->tid = tid;
	*(volatile __u64 *)&cpu->vmcb.vmcb = 0;
	*(volatile __u64 *)&cpu->kvm_vcpu = (__u64)kvm;
	return number;
}

/* Number of the thread's vCPU, which is `kvm` if the event has it. Another program may preempt
 * this one and change the pCPU's state: it is read once, then checked. */
static __always_inline __u32 trace_number_of(struct vp_trace_cpu *cpu, struct kvm_vcpu *kvm,
					     __u32 tid)
{
	__u32 number = *(volatile __u32 *)&cpu->vcpu;
	__u64 known = *(volatile __u64 *)&cpu->kvm_vcpu;

	if (known && (known == (__u64)kvm || !kvm) && *(volatile __u32 *)&cpu->tid == tid)
		return number;
	return trace_find_vcpu(cpu, kvm, tid);
}

SEC("raw_tp/kvm_entry")
int kvm_entry(struct bpf_raw_tracepoint_args *context)
{
	struct vp_trace_cpu *cpu = this_cpu();
	__u64 id = bpf_get_current_pid_tgid();

	if (!cpu)
		return 0;
	/* Arm's tracepoints do not name the vCPU. */
	struct kvm_vcpu *kvm = vendor == VP_VENDOR_ARM ? 0 : (void *)context->args[0];
	name_current(cpu, id);
	PUT(cpu, kvm_entry, .tid = (__u32)id, .vm = id >> 32,
	    .vcpu = (__u16)trace_number_of(cpu, kvm, (__u32)id));
	return 0;
}

struct left {
	__u64 rip;
	__u32 reason;
	bool reported; /* the reason is valid */
	struct exit_detail detail;
};

/* Reduces a memory access to its page, as VP_DETAIL_MEMORY_* require. */
static __always_inline void note_page(struct exit_detail *detail)
{
	__u64 page = detail->address >> 12;

	if (detail->address != VP_NO_ADDRESS && page < 0xffffffff)
		detail->number = page + 1;
}

/* With a copy of the cached VMCB data: see trace_number_of(). */
static __always_inline void leave_amd(struct vp_trace_cpu *cpu, struct kvm_vcpu *kvm,
				      struct left *left)
{
	struct vp_vmcb_memo memo = {.vmcb = *(volatile __u64 *)&cpu->vmcb.vmcb,
				    .uses = *(volatile __u64 *)&cpu->vmcb.uses};
	struct vmcb_regs saved;
	struct vmcb_view vmcb;
	__u64 code;

	if (*(volatile __u64 *)&cpu->kvm_vcpu != (__u64)kvm)
		memo.vmcb = 0;
	if (!read_exit_reason(kvm, &memo, &code, &vmcb))
		return;
	if (*(volatile __u64 *)&cpu->kvm_vcpu == (__u64)kvm)
		cpu->vmcb = memo;
	left->reason = (__u32)code;
	left->reported = true;
	if (read_vmcb_regs(&vmcb, &saved))
		left->rip = saved.rip;
	detail_of_amd(kvm, &vmcb, left->reason, &left->detail);
	note_page(&left->detail);
}

/* From KVM's event of this exit, or from KVM's struct. */
static __always_inline void leave_intel(struct kvm_vcpu *kvm, struct left *left)
{
	struct vp_last_exit *now = this_cpu_last_exit();

	if (now && now->known) {
		left->reason = now->reason;
		left->reported = true;
		left->rip = now->rip;
		detail_of_intel(kvm, now, &left->detail);
		return;
	}
	left->reported = read_vmx_exit_reason(kvm, &left->reason);
	read_vmx_rip(kvm, &left->rip);
}

/* v5.17, 0a62a0319abb "KVM: x86: Get error code from get_exit_info" and related commits removed
 * the reason before the vCPU. A kernel pointer is negative, a reason is not. */
static __always_inline struct kvm_vcpu *
leave_x86(struct vp_trace_cpu *cpu, struct bpf_raw_tracepoint_args *context, struct left *left)
{
	__u64 first = context->args[0];
	struct kvm_vcpu *kvm = (void *)((__s64)first < 0 ? first : context->args[1]);

	if (vendor == VP_VENDOR_AMD)
		leave_amd(cpu, kvm, left);
	else
		leave_intel(kvm, left);
	if ((__s64)first >= 0) {
		left->reason = (__u32)first;
		left->reported = true;
	}
	return kvm;
}

/* kvm_exit(code, exception class, program counter). The reason combines code and class: see
 * VP_ARM_NO_TRAP. */
static __always_inline void leave_arm(struct bpf_raw_tracepoint_args *context, struct left *left)
{
	enum { TRAP = 2 };
	__u64 code = context->args[0], class = context->args[1];

	left->reason = (code & 0xf) == TRAP ? class & 0x3f : VP_ARM_NO_TRAP | (code & 0xf);
	left->reported = true;
	left->rip = context->args[2];
}

SEC("raw_tp/kvm_exit")
int kvm_exit(struct bpf_raw_tracepoint_args *context)
{
	struct left left = {.reported = false};
	struct vp_trace_cpu *cpu = this_cpu();
	__u64 id = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();
	struct kvm_vcpu *kvm = 0;

	if (!cpu)
		return 0;
	if (vendor == VP_VENDOR_ARM)
		leave_arm(context, &left);
	else
		kvm = leave_x86(cpu, context, &left);
	__u32 number = trace_number_of(cpu, kvm, (__u32)id);
	name_current(cpu, id);
	/* Recorded before the exit, or the exit is dropped: the exit ends what ran until then. */
	if (sees_guests && !record_guest(cpu, id, number, now)) {
		__sync_fetch_and_add(&cpu->lost, 1);
		return 0;
	}
	PUT_AT(cpu, kvm_exit, now, .tid = (__u32)id, .guest_rip = left.rip, .vm = id >> 32,
	       .reason = left.reason, .detail = left.detail.number, .vcpu = (__u16)number,
	       .vendor = (__u16)(left.reported ? vendor : VP_VENDOR_UNKNOWN),
	       .detail_kind = (__u16)left.detail.kind);
	return 0;
}

SEC("raw_tp/kvm_inj_virq")
int kvm_inj_virq(struct bpf_raw_tracepoint_args *context)
{
	struct vp_trace_cpu *cpu = this_cpu();
	__u64 id = bpf_get_current_pid_tgid();

	if (!cpu)
		return 0;
	name_current(cpu, id);
	PUT(cpu, kvm_inj_virq, .tid = (__u32)id, .vm = id >> 32,
	    .vcpu = (__u16)trace_number_of(cpu, 0, (__u32)id), .vector = (__u16)context->args[0]);
	return 0;
}

/* An interrupt event, with its number. */
#define INTERRUPT(event, number)                                                                   \
	SEC("raw_tp/" #event) int event(struct bpf_raw_tracepoint_args *context)                   \
	{                                                                                          \
		struct vp_trace_cpu *cpu = this_cpu();                                             \
		__u64 id = bpf_get_current_pid_tgid();                                             \
                                                                                                   \
		if (!cpu)                                                                          \
			return 0;                                                                  \
		name_current(cpu, id);                                                             \
		PUT(cpu, event, .tid = (__u32)id, .number = (__u32)context->args[0]);              \
		return 0;                                                                          \
	}

INTERRUPT(irq_handler_entry, irq)
INTERRUPT(irq_handler_exit, irq)
INTERRUPT(softirq_entry, vec)
INTERRUPT(softirq_exit, vec)
#if defined(__TARGET_ARCH_x86)
INTERRUPT(local_timer_entry, vector)
INTERRUPT(local_timer_exit, vector)
#endif

char LICENSE[] SEC("license") = "GPL";
