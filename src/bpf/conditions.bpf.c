/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects that a vCPU waited for a pCPU, was throttled, or was outside guest mode for longer
 * than a limit. Notifies user space of the first such event after it was armed. A thread counts
 * as a vCPU from its first KVM_RUN until it exits. */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/conditions_abi.h"
#include "bpf/sched_compat.bpf.h"

/* Set by the loader: limit of each kind, ns; all ones: not requested. */
const volatile __u64 limits[VP_FIRED_KINDS];
const volatile __u32 every_vm = 1;

volatile __u32 enabled;
/* Set by user space, cleared here: one notice is sent, further events are only counted. */
volatile __u32 armed;
__u64 dropped[VP_FIRED_KINDS];

enum { MAX_THREADS = 16384, MAX_VMS = 4096 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_THREADS);
	__type(key, __u32);
	__type(value, struct vp_condition_thread);
} threads SEC(".maps");

/* Pids of the selected VMMs, unless every_vm is set. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_VMS);
	__type(key, __u32);
	__type(value, __u8);
} vms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_condition_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16384);
} fired SEC(".maps");

static __always_inline bool may_fire(__u32 kind)
{
	if (armed) {
		armed = 0;
		return true;
	}
	__sync_fetch_and_add(&dropped[kind], 1);
	return false;
}

/* Two pCPUs may both find it armed: user space uses the first notice. */
static __noinline int fire(__u32 kind, __u64 from, __u64 to, __u32 pid, __u32 tid)
{
	struct vp_condition_thread *thread = bpf_map_lookup_elem(&threads, &tid);

	if (!thread || !may_fire(kind))
		return 0;
	__u32 number = thread->cpu;
	struct vp_condition_cpu *cpu = bpf_map_lookup_elem(&cpus, &number);
	struct vp_condition_notice *notice = bpf_ringbuf_reserve(&fired, sizeof(*notice), 0);
	if (!notice)
		return 0;
	__builtin_memset(&notice->fired, 0, sizeof(notice->fired));
	notice->fired.time = to;
	notice->fired.ns = to - from;
	notice->fired.kind = kind;
	notice->fired.pid = pid;
	notice->fired.tid = tid;
	notice->fired.vcpu = thread->vcpu;
	notice->fired.cpu = number;
	notice->fired.reason = thread->reason;
	bpf_probe_read_kernel(&notice->cpu, sizeof(notice->cpu), cpu); /* zeroed if `cpu` is NULL */
	bpf_ringbuf_submit(notice, BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __noinline int add_thread(void *notifier, __u32 tid)
{
	struct vp_condition_thread thread = {.vcpu = VP_VCPU_UNKNOWN};
	struct kvm_vcpu *kvm = notifier ? vcpu_of_notifier(notifier) : 0;

	if (kvm && bpf_core_type_exists(struct kvm_vcpu))
		thread.vcpu = BPF_CORE_READ(kvm, vcpu_id);
	bpf_map_update_elem(&threads, &tid, &thread, BPF_NOEXIST);
	return 0;
}

static __always_inline bool conditions_is_chosen(__u32 pid)
{
	return every_vm || bpf_map_lookup_elem(&vms, &pid);
}

/* NULL: the task is not a vCPU thread, or not of a selected VM. */
static __always_inline struct vp_condition_thread *conditions_thread_of(struct task_struct *task)
{
	void *notifier = kvm_notifier_of_known_task(task);
	__u32 tid = task->pid;
	struct vp_condition_thread *thread = bpf_map_lookup_elem(&threads, &tid);

	if (thread || !notifier || !conditions_is_chosen(task->tgid))
		return thread;
	add_thread(notifier, tid);
	return bpf_map_lookup_elem(&threads, &tid);
}

static __always_inline void conditions_switch_out(struct vp_condition_thread *thread,
						  struct task_struct *task, bool preempted,
						  __u32 cpu, __u64 now)
{
	__u32 state = task_state(task), tid = task->pid;

	thread->ready_at = 0;
	if (preempted || !state) {
		thread->ready_at = now;
		thread->woken = 0;
		thread->cpu = cpu;
		if (limits[VP_FIRED_THROTTLED] != ~0ULL && task_is_throttled(task) &&
		    !thread->throttled) {
			thread->throttled = 1;
			fire(VP_FIRED_THROTTLED, now, now, task->tgid, tid);
		}
	} else if (state & TASK_DEAD) {
		bpf_map_delete_elem(&threads, &tid);
	}
}

static __always_inline void conditions_switch_in(struct vp_condition_thread *thread,
						 struct task_struct *task, __u64 now)
{
	__u64 since = thread->ready_at, waited = since ? now - since : 0;

	thread->ready_at = 0;
	thread->throttled = 0;
	if (waited > limits[VP_FIRED_STEAL])
		fire(VP_FIRED_STEAL, since, now, task->tgid, task->pid);
	else if (thread->woken && waited > limits[VP_FIRED_WAKEUP])
		fire(VP_FIRED_WAKEUP, since, now, task->tgid, task->pid);
}

/* Slice `head` is open: its end is not set yet. */
static __always_inline void next_slice(struct vp_condition_cpu *cpu, struct task_struct *next,
				       __u64 now)
{
	cpu->slices[cpu->head & (VP_CONDITION_SLICES - 1)].end = now;
	__u64 head = cpu->head + 1;
	struct vp_condition_slice *slice = &cpu->slices[head & (VP_CONDITION_SLICES - 1)];
	slice->begin = now;
	slice->end = 0;
	slice->pid = next->tgid;
	slice->tid = next->pid;
	__builtin_memcpy(slice->comm, next->comm, sizeof(slice->comm));
	cpu->head = head;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(see_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	__u32 here = bpf_get_smp_processor_id();
	struct vp_condition_cpu *cpu = bpf_map_lookup_elem(&cpus, &here);

	if (!enabled || !cpu)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	next_slice(cpu, next, now);
	struct vp_condition_thread *out = conditions_thread_of(prev),
				   *in = conditions_thread_of(next);
	if (out)
		conditions_switch_out(out, prev, preempted, here, now);
	if (in)
		conditions_switch_in(in, next, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(see_wakeup, struct task_struct *task)
{
	struct vp_condition_thread *thread = enabled ? conditions_thread_of(task) : 0;

	/* The thread may still be runnable. */
	if (!thread || thread->ready_at)
		return 0;
	thread->ready_at = bpf_ktime_get_ns();
	thread->woken = 1;
	thread->cpu = task_cpu(task);
	return 0;
}

static __always_inline bool is_halt(__u32 reason)
{
	if (vendor == VP_VENDOR_AMD)
		return reason == 0x78 || reason == 0x8b || reason == 0x8c || reason == 0xa6;
	if (vendor == VP_VENDOR_ARM)
		return reason == 0x01; /* WFI, WFE */
	return (reason & 0xffff) == 12 || (reason & 0xffff) == 36;
}

/* As in trace.bpf.c: the location of the reason depends on kernel and processor. */
static __always_inline __u32 conditions_reason_of(struct bpf_raw_tracepoint_args *context)
{
	__u64 first = context->args[0], code = 0;
	struct kvm_vcpu *kvm = (void *)((__s64)first < 0 ? first : context->args[1]);
	struct vp_vmcb_memo memo = {};
	struct vmcb_view vmcb;
	__u32 reason = ~0U;

	if (vendor == VP_VENDOR_ARM)
		return (first & 0xf) == 2 ? context->args[1] & 0x3f
					  : VP_ARM_NO_TRAP | (first & 0xf);
	if ((__s64)first >= 0)
		return (__u32)first;
	if (vendor == VP_VENDOR_AMD)
		return read_exit_reason(kvm, &memo, &code, &vmcb) ? (__u32)code : reason;
	read_vmx_exit_reason(kvm, &reason);
	return reason;
}

/* The running thread, if it is a vCPU thread. */
static __always_inline struct vp_condition_thread *this_thread(__u64 id)
{
	__u32 tid = (__u32)id;
	struct vp_condition_thread *thread = bpf_map_lookup_elem(&threads, &tid);

	if (thread || !conditions_is_chosen(id >> 32))
		return thread;
	add_thread(kvm_notifier_of_task((void *)bpf_get_current_task()), tid);
	return bpf_map_lookup_elem(&threads, &tid);
}

SEC("raw_tp/kvm_exit")
int start_exit(struct bpf_raw_tracepoint_args *context)
{
	struct vp_condition_thread *thread = enabled ? this_thread(bpf_get_current_pid_tgid()) : 0;

	if (!thread)
		return 0;
	thread->reason = conditions_reason_of(context);
	thread->cpu = bpf_get_smp_processor_id();
	thread->exit_at = is_halt(thread->reason) ? 0 : bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/kvm_entry")
int end_exit(struct bpf_raw_tracepoint_args *context)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)id;
	struct vp_condition_thread *thread = enabled ? bpf_map_lookup_elem(&threads, &tid) : 0;

	if (!thread || !thread->exit_at)
		return 0;
	__u64 now = bpf_ktime_get_ns(), since = thread->exit_at;
	thread->exit_at = 0;
	if (now - since > limits[VP_FIRED_EXIT])
		fire(VP_FIRED_EXIT, since, now, id >> 32, tid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
