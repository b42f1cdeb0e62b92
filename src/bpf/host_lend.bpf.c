/* SPDX-License-Identifier: GPL-2.0-or-later */
/* At each VM entry of a vCPU whose guest has clients, publishes its counts so far in its cell in
 * guest memory (protocol/lent.h). It runs in the vCPU thread, where guest RAM is ordinary user
 * memory, and outside guest mode, so the vCPU sees the cell change atomically. The program reads
 * only the marker from guest memory. */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "bpf/kvm_slots.bpf.h"
#include "bpf/lend_abi.h"
#include "protocol/lent.h"

struct sched_info {
	unsigned long long run_delay;
} CORE;

struct task_struct___waits {
	struct sched_info sched_info;
} CORE;

/* Generation of the VM's memory slots when the cells were located; after a change, their
 * addresses may be other memory. */
volatile __u64 generation = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_LEND_SLOTS);
	__type(key, __u32);
	__type(value, struct vp_lend_vcpu);
} vcpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, VP_LEND_MAX_VCPUS *VP_LENT_EVENTS);
	__type(key, __u32);
	__type(value, __u32);
} events SEC(".maps");

enum bpf_func_id___here { BPF_FUNC_get_current_task_btf___here = 158 };

/* Time (ns) that this thread waited for a CPU. Since Linux 5.11 (3ca1032ab7ab), a task_struct
 * can be read by plain loads, without a helper call. */
static __always_inline __u64 run_delay(void)
{
	struct task_struct___waits *task;

	if (bpf_core_enum_value_exists(enum bpf_func_id___here,
				       BPF_FUNC_get_current_task_btf___here)) {
		task = (void *)bpf_get_current_task_btf();
		return task->sched_info.run_delay;
	}
	task = (void *)bpf_get_current_task();
	return BPF_CORE_READ(task, sched_info.run_delay);
}

/* False: an event is not on a counter, so its count is too small. */
static __always_inline bool read_events(const struct vp_lend_vcpu *vcpu, struct vp_lent_cell *cell)
{
	const __u64 errors = (__u64)-4095;

	for (__u32 i = 0; i < VP_LENT_EVENTS && i < vcpu->n; i++) {
		/* Without enabled and running times: a pinned event is always on its counter, or
		 * reading fails (kernel/events/core.c, perf_event_read_local()). */
		cell->counts[i] = bpf_perf_event_read(&events, vcpu->first + i);
		if (cell->counts[i] >= errors)
			return false;
	}
	return true;
}

/* On 64-bit Arm, the tracepoint has the guest's program counter instead of the vCPU. */
static __always_inline struct kvm_vcpu *entering_vcpu(const struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (vendor != VP_VENDOR_ARM)
		return (void *)context->args[0];
	void *notifier = BPF_CORE_READ(task, preempt_notifiers.first);
	return notifier ? vcpu_of_notifier(notifier) : 0;
}

/* Whether the memory slots of this thread's VM are unchanged. */
static __always_inline bool memory_is_same(const struct bpf_raw_tracepoint_args *context)
{
	struct kvm_vcpu *vcpu = entering_vcpu(context);

	/* The argument of kvm_entry is a vCPU in all kernels with BTF of KVM's module. */
	if (!vcpu || !generation || !bpf_core_type_exists(struct kvm_vcpu___vm))
		return false;
	return slots_generation(BPF_CORE_READ((struct kvm_vcpu___vm *)vcpu, kvm)) == generation;
}

static __always_inline struct vp_lend_vcpu *host_lend_vcpu_of(__u32 tid)
{
	for (__u32 i = 0; i < VP_LEND_TRIES; i++) {
		__u32 slot = (tid + i) % VP_LEND_SLOTS;
		struct vp_lend_vcpu *vcpu = bpf_map_lookup_elem(&vcpus, &slot);
		if (!vcpu || !vcpu->tid)
			return 0;
		if (vcpu->tid == tid)
			return vcpu;
	}
	return 0;
}

SEC("raw_tp/kvm_entry")
int publish(struct bpf_raw_tracepoint_args *context)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct vp_lend_vcpu *vcpu = host_lend_vcpu_of(tid);
	struct vp_lent_cell cell = {0};
	__u64 marker = 0;

	if (!vcpu)
		return 0;
	if (bpf_probe_read_user(&marker, sizeof(marker), (void *)vcpu->hva) ||
	    marker != vcpu->marker) {
		vcpu->idle++;
		return 0;
	}
	if (!memory_is_same(context)) {
		vcpu->moved++;
		return 0;
	}
	if (!read_events(vcpu, &cell)) {
		vcpu->unread++;
		/* Invalidates the marker if it is writable, so that clients do not use counts
		 * that no longer advance. */
		bpf_probe_write_user((void *)vcpu->hva, &cell.marker, sizeof(cell.marker));
		return 0;
	}
	cell.stolen = run_delay();
	cell.sequence = ++vcpu->sequence;
	/* Written after the marker, with as many counts as there are events. */
	if (bpf_probe_write_user((void *)(vcpu->hva + sizeof(marker)), &cell.sequence,
				 sizeof(cell) - sizeof(marker) - sizeof(cell.spare)))
		vcpu->unwritten++;
	else
		vcpu->published++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
