/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * At each VM entry of a vCPU whose guest has clients, what was counted of it so far goes to its
 * cell in the guest's memory (schema/lent.h). It runs in the vCPU's thread, where the guest's RAM
 * is ordinary memory of a user, and the vCPU is out of the guest: what is in the cell changes at
 * once for whoever runs there. The program reads of the guest's memory only whether the marker is
 * there.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "bpf/lend.h"
#include "schema/lent.h"

struct sched_info {
	unsigned long long run_delay;
} __attribute__((preserve_access_index));

struct task_struct {
	struct sched_info sched_info;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_LEND_PLACES);
	__type(key, __u32);
	__type(value, struct vp_lend_vcpu);
} vcpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, VP_LEND_MOST_VCPUS *VP_LENT_EVENTS);
	__type(key, __u32);
	__type(value, __u32);
} events SEC(".maps");

enum bpf_func_id___here { BPF_FUNC_get_current_task_btf___here = 158 };

/* ns that this thread waited for a CPU. Linux 5.11 (3ca1032ab7ab) has a task that can be read as
 * any memory, without a call. */
static __always_inline __u64 run_delay(void)
{
	struct task_struct *task;

	if (bpf_core_enum_value_exists(enum bpf_func_id___here,
				       BPF_FUNC_get_current_task_btf___here)) {
		task = bpf_get_current_task_btf();
		return task->sched_info.run_delay;
	}
	task = (struct task_struct *)bpf_get_current_task();
	return BPF_CORE_READ(task, sched_info.run_delay);
}

/* False: an event is not on a counter, and what it shows is less than happened. */
static __always_inline bool read_events(const struct vp_lend_vcpu *vcpu, struct vp_lent_cell *cell)
{
	const __u64 errors = (__u64)-4095;

	for (__u32 i = 0; i < VP_LENT_EVENTS && i < vcpu->n; i++) {
		/* Without its times: a pinned event is on its counter all the time, or this fails
		 * (kernel/events/core.c, perf_event_read_local()). */
		cell->counts[i] = bpf_perf_event_read(&events, vcpu->first + i);
		if (cell->counts[i] >= errors)
			return false;
	}
	return true;
}

static __always_inline struct vp_lend_vcpu *vcpu_of(__u32 tid)
{
	for (__u32 i = 0; i < VP_LEND_TRIES; i++) {
		__u32 place = (tid + i) % VP_LEND_PLACES;
		struct vp_lend_vcpu *vcpu = bpf_map_lookup_elem(&vcpus, &place);
		if (!vcpu || !vcpu->tid)
			return 0;
		if (vcpu->tid == tid)
			return vcpu;
	}
	return 0;
}

SEC("raw_tp/kvm_entry")
int publish(void *context)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct vp_lend_vcpu *vcpu = vcpu_of(tid);
	struct vp_lent_cell cell = {0};
	__u64 marker = 0;

	if (!vcpu)
		return 0;
	if (bpf_probe_read_user(&marker, sizeof(marker), (void *)vcpu->hva) ||
	    marker != vcpu->marker) {
		vcpu->idle++;
		return 0;
	}
	if (!read_events(vcpu, &cell)) {
		vcpu->unread++;
		/* Broken, if that can be written: nobody takes what stands still for counts. */
		bpf_probe_write_user((void *)vcpu->hva, &cell.marker, sizeof(cell.marker));
		return 0;
	}
	cell.stolen = run_delay();
	cell.sequence = ++vcpu->sequence;
	/* Behind the marker, and no more than there is of events. */
	if (bpf_probe_write_user((void *)(vcpu->hva + sizeof(marker)), &cell.sequence,
				 sizeof(cell) - sizeof(marker) - sizeof(cell.spare)))
		vcpu->unwritten++;
	else
		vcpu->published++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
