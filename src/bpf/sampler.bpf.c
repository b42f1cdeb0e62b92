/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes the samples: one program on each pCPU's trigger, one on the scheduler's switches (only
 * switches of vCPU threads leave a record). Records go to the pCPU's own perf buffer, whose event
 * is opened with PERF_SAMPLE_IP: the kernel itself adds the PC and whether it was the guest's.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kvm_compat.bpf.h"
#include "bpf/sampler.h"
#include "schema/records.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} records SEC(".maps");

/* Records that found the buffer full, per pCPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static __always_inline void output(void *context, struct vp_raw_record *record)
{
	__u32 zero = 0;

	if (!bpf_perf_event_output(context, &records, BPF_F_CURRENT_CPU, record, sizeof(*record)))
		return;
	__u64 *count = bpf_map_lookup_elem(&lost, &zero);
	if (count)
		(*count)++;
}

/* Fills in which vCPU the thread is inside of, if any, and what its last exit was. */
static __always_inline struct kvm_vcpu *note_vcpu(struct task_struct *task,
						  struct vp_raw_record *record)
{
	void *notifier = kvm_notifier_of_task(task);
	if (!notifier)
		return 0;
	record->flags |= VP_RAW_ON_VCPU;

	struct kvm_vcpu *vcpu = vcpu_of_notifier(notifier);
	if (!vcpu)
		return 0;
	record->flags |= VP_RAW_VCPU_KNOWN;
	record->vcpu = BPF_CORE_READ(vcpu, vcpu_id);
	if (read_exit_reason(vcpu, &record->exit_reason))
		record->flags |= VP_HAS_EXIT_REASON;
	return vcpu;
}

SEC("perf_event")
int take_sample(struct bpf_perf_event_data *context)
{
	struct vp_raw_record record = {.time = bpf_ktime_get_ns(), .kind = VP_RAW_SAMPLE};
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 id = bpf_get_current_pid_tgid();

	record.pid = id >> 32;
	record.tid = (__u32)id;
	record.host_ip = PT_REGS_IP(&context->regs);
	bpf_get_current_comm(record.comm, sizeof(record.comm));

	struct kvm_vcpu *vcpu = note_vcpu(task, &record);
	if (vcpu && read_as_root(vcpu, &record.as_root, &record.cpl))
		record.flags |= VP_HAS_AS_ROOT | VP_HAS_CPL;
	output(context, &record);
	return 0;
}

static __always_inline void note_switch(void *context, struct task_struct *task,
					struct task_struct *other, __u32 kind, __u32 flags)
{
	if (!kvm_notifier_of_task(task))
		return;

	struct vp_raw_record record = {
	    .time = bpf_ktime_get_ns(),
	    .kind = kind,
	    .flags = flags,
	    .pid = BPF_CORE_READ(task, tgid),
	    .tid = BPF_CORE_READ(task, pid),
	    .other_tid = BPF_CORE_READ(other, pid),
	};
	note_vcpu(task, &record);
	output(context, &record);
}

SEC("raw_tp/sched_switch")
int note_vcpu_switch(struct bpf_raw_tracepoint_args *context)
{
	bool preempted = context->args[0];
	struct task_struct *prev = (void *)context->args[1];
	struct task_struct *next = (void *)context->args[2];

	__u32 blocked = !preempted && task_is_blocked(prev) ? VP_BLOCKED : 0;

	note_switch(context, prev, next, VP_RAW_VCPU_OUT, blocked);
	note_switch(context, next, prev, VP_RAW_VCPU_IN, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
