/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of sampler.bpf.c: output through perf's buffers; see VP_SEEN_BY_PERF. */
#ifndef VP_BPF_SAMPLER_BY_PERF_H
#define VP_BPF_SAMPLER_BY_PERF_H

#include "bpf/chain.bpf.h"
#include "bpf/guest_current.bpf.h"
#include "bpf/interpreter.bpf.h"
#include "bpf/sampler_ring.bpf.h"
#include "bpf/sampler_vcpu.bpf.h"
#include "bpf/sampler_weight.bpf.h"

/* By perf: each event is opened with PERF_SAMPLE_IP. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} records SEC(".maps");

/* Sends the record, or counts it as lost. */
static __always_inline void send(void *context, void *bytes, __u64 size)
{
	struct vp_ring *ring;

	if (bpf_perf_event_output(context, &records, BPF_F_CURRENT_CPU, bytes, size) &&
	    (ring = ring_here()))
		ring->lost++;
}

static __always_inline void put_raw(void *context, struct vp_raw_record *record)
{
	send(context, record, sizeof(*record));
}

/* Adds the vCPU of a thread inside KVM_RUN. */
static __always_inline void fill_vcpu(void *notifier, bool with_rip, struct vp_raw_record *record,
				      __u64 *guest_ip)
{
	struct kvm_vcpu *vcpu = vcpu_of_notifier(notifier);
	struct vcpu_regs words;

	record->flags |= VP_RAW_ON_VCPU;
	record->vcpu = vcpu_number(vcpu);
	if (!vcpu)
		return;
	read_vcpu(vcpu, with_rip, &words);
	record->flags |= words.flags;
	record->exit_reason = words.exit_reason;
	record->as_root = words.as_root;
	*guest_ip = words.ip;
	record->cpl = words.cpl;
}

static __always_inline void fill_guest_task(struct vp_raw_record *record)
{
	struct guest_current current;
	__u32 memo = VP_IDENTITY_VCPUS;

	bool known = read_guest_current(record->pid, record->vcpu, record->as_root,
					record->cpl == 3, record->time, &memo, &current);
	if (root_is_hidden() && current.as_root) {
		record->as_root = current.as_root;
		record->flags |= VP_HAS_AS_ROOT;
	}
	if (!known)
		return;
	record->guest_task = current.task;
	record->guest_pid = current.tgid;
	record->guest_tid = current.tid;
	__builtin_memcpy(record->guest_comm, current.comm, sizeof(record->guest_comm));
	record->flags |= VP_BY_MEMORY | (current.is_new ? VP_RAW_NEW_TASK : 0);
}

static __always_inline void fill_method(void *notifier, struct vp_raw_record *record)
{
	struct vp_interpreter *interpreter = find_interpreter(record->pid, record->guest_pid);
	struct kvm_vcpu *vcpu = interpreter ? vcpu_of_notifier(notifier) : 0;

	if (vcpu)
		record->method =
		    interpreted_method(interpreter, vcpu, record->pid, record->vcpu,
				       record->guest_pid, record->guest_tid, record->as_root);
}

/* Sends stacks, including the guest's even if the sample may have hit the host: only perf knows. */
static __always_inline void send_chains(struct bpf_perf_event_data *context, void *notifier,
					const struct vp_raw_record *record, __u64 guest_ip)
{
	struct chain_maker *maker =
	    chain_begin(record->tid, record->time, sizeof(struct vp_raw_chain));
	struct kvm_vcpu *vcpu = notifier ? vcpu_of_notifier(notifier) : 0;

	if (!maker)
		return;
	if (vcpu) {
		struct guest_current current = {.known = record->flags & VP_BY_MEMORY,
						.tgid = record->guest_pid,
						.tid = record->guest_tid,
						.task = record->guest_task};
		struct chain_subject subject = {.vcpu = vcpu,
						.pid = record->pid,
						.number = record->vcpu,
						.cpl = record->cpl,
						.flags = record->flags,
						.ip = guest_ip,
						.as_root = record->as_root};
		chain_of_guest(maker, &subject, &current);
	}
	chain_of_host(maker, context);
	struct vp_ring *ring = ring_here();
	if (!ring)
		return;
	struct vp_raw_chain *raw = (void *)(ring + 1);
	__u64 used = chain_size(maker);
	raw->kind = VP_RAW_CHAIN;
	raw->used = used;
	send(context, raw, sizeof(*raw) + used);
}

static __always_inline void sample_by_perf(struct bpf_perf_event_data *context, bool with_chains)
{
	void *notifier = kvm_notifier_of_task((void *)bpf_get_current_task());
	__u64 id = bpf_get_current_pid_tgid(), guest_ip = 0;
	struct vp_raw_record record = {
	    .time = bpf_ktime_get_ns(),
	    .kind = VP_RAW_SAMPLE,
	    .pid = id >> 32,
	    .tid = (__u32)id,
	    .vcpu = VP_VCPU_UNKNOWN,
	    .host_ip = PT_REGS_IP(&context->regs),
	    .events = events_since(context),
	};

	bpf_get_current_comm(record.comm, sizeof(record.comm));
	if (notifier) {
		fill_vcpu(notifier, true, &record, &guest_ip);
		if (vendor == VP_VENDOR_ARM && run_end && !ended_run(&context->regs))
			record.flags |= VP_RAW_IN_HOST;
		if (by_memory)
			fill_guest_task(&record);
		if (record.flags & VP_BY_MEMORY)
			fill_method(notifier, &record);
	}
	if (with_chains && record.pid)
		send_chains(context, notifier, &record, guest_ip);
	put_raw(context, &record);
}

static __always_inline void switch_by_perf(void *context, struct task_struct *task,
					   struct task_struct *other, void *notifier, __u32 id,
					   __u32 flags)
{
	struct vp_raw_record record = {
	    .time = bpf_ktime_get_ns(),
	    .kind = id == VP_ID_vcpu_in ? VP_RAW_VCPU_IN : VP_RAW_VCPU_OUT,
	    .flags = flags,
	    .pid = task->tgid,
	    .tid = task->pid,
	    .other_tid = other->pid,
	};
	__u64 guest_ip;

	fill_vcpu(notifier, false, &record, &guest_ip);
	put_raw(context, &record);
}

#endif
