/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes the samples: one program on each pCPU's trigger, one on the scheduler's switches (only
 * switches of vCPU threads leave a record). Records go to the pCPU's own ring; where perf has to
 * say what a sample hit, to the pCPU's own perf buffer, whose event is opened with PERF_SAMPLE_IP:
 * the kernel itself adds the PC and whether it was the guest's.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/guest_current.bpf.h"
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

/* In place of `records`, if seen_by is VP_SEEN_BY_IRQ: a ring per pCPU, and its slots. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_raw_record);
} slots SEC(".maps");

/* Wakes the reader when a ring is half full. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

/* Set by the loader (enum vp_seen_by). */
const volatile __u32 seen_by = VP_SEEN_BY_PERF;
/* Slots of a ring: a power of two. */
const volatile __u64 ring_size = 1;

/* Per pCPU: what the sample before was of. Its name and its vCPU's number need no reading again. */
struct last {
	void *notifier;
	__u32 tid, vcpu, renames;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct last);
} lasts SEC(".maps");

/* Whenever any thread changes its name. */
__u32 renames = 1;

static __always_inline void count_lost(void)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&lost, &zero);

	if (count)
		(*count)++;
}

/* A slot of the pCPU's ring, zeroed; ring_end() hands it over. NULL, and counted, if full. */
static __always_inline struct vp_raw_record *ring_begin(struct vp_ring **ret)
{
	__u32 pcpu = bpf_get_smp_processor_id();
	struct vp_ring *ring = bpf_map_lookup_elem(&rings, &pcpu);
	struct vp_raw_record *record = 0;

	if (ring && ring->head - *(volatile __u64 *)&ring->tail < ring_size) {
		__u32 slot = pcpu * (__u32)ring_size + (__u32)(ring->head & (ring_size - 1));
		record = bpf_map_lookup_elem(&slots, &slot);
	}
	if (record)
		*record = (struct vp_raw_record){};
	else
		count_lost();
	*ret = ring;
	return record;
}

/* Stores are seen in order on the processors that this is for (x86). */
static __always_inline void ring_end(struct vp_ring *ring)
{
	__u64 head = ring->head + 1;

	barrier();
	*(volatile __u64 *)&ring->head = head;
	if (head - *(volatile __u64 *)&ring->tail == ring_size / 2)
		bpf_ringbuf_output(&doorbell, &head, sizeof(head), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void perf_output(void *context, struct vp_raw_record *record)
{
	if (bpf_perf_event_output(context, &records, BPF_F_CURRENT_CPU, record, sizeof(*record)))
		count_lost();
}

/* Which vCPU the thread is inside of; `last`, if there is one, may know its number. */
static __always_inline struct kvm_vcpu *note_vcpu(void *notifier, struct last *last,
						  struct vp_raw_record *record)
{
	record->flags |= VP_RAW_ON_VCPU;

	struct kvm_vcpu *vcpu = vcpu_of_notifier(notifier);
	if (!vcpu)
		return 0;
	record->flags |= VP_RAW_VCPU_KNOWN;
	if (last && last->notifier == notifier) {
		record->vcpu = last->vcpu;
	} else {
		record->vcpu = BPF_CORE_READ(vcpu, vcpu_id);
		if (last) {
			last->notifier = notifier;
			last->vcpu = record->vcpu;
		}
	}
	if (read_vmx_exit_reason(vcpu, &record->exit_reason))
		record->flags |= VP_HAS_EXIT_REASON;
	return vcpu;
}

/* What the VMCB says: the last exit, and for a sample that hit the guest where that was. */
static __always_inline void note_vmcb(struct kvm_vcpu *vcpu, bool with_place,
				      struct vp_raw_record *record)
{
	struct vmcb_exit exit = {};
	struct vmcb_place place = {};
	void *vmcb = vendor == 2 ? vmcb_of(vcpu) : 0;

	if (!vmcb || bpf_probe_read_kernel(&exit, sizeof(exit), vmcb + VMCB_EXIT_CODE))
		return;
	record->exit_reason = (__u32)exit.code;
	record->flags |= VP_HAS_EXIT_REASON;
	if (!with_place || !read_place(vcpu, vmcb, &exit, &place, &record->cpl))
		return;
	record->as_root = place.cr3;
	record->guest_ip = place.rip;
	record->flags |= VP_HAS_AS_ROOT | VP_HAS_CPL;
}

/* Who runs in the guest, by the guest's own memory. */
static __always_inline void note_guest_task(struct vp_raw_record *record)
{
	struct guest_current current;

	if (!read_guest_current(record->pid, record->vcpu, record->cpl == 3, &current))
		return;
	record->guest_task = current.task;
	record->guest_tgid = current.tgid;
	record->guest_tid = current.tid;
	__builtin_memcpy(record->guest_comm, current.comm, sizeof(record->guest_comm));
	record->flags |= VP_BY_MEMORY;
	/* Its mappings are to be read before it ends. */
	if (current.is_new && seen_by != VP_SEEN_BY_PERF)
		bpf_ringbuf_output(&doorbell, &current.tgid, sizeof(current.tgid),
				   BPF_RB_FORCE_WAKEUP);
}

static __always_inline void name_sample(struct last *last, struct vp_raw_record *record)
{
	__u32 seen = renames;

	if (last && last->tid == record->tid && last->renames == seen) {
		record->flags |= VP_RAW_NAMELESS;
		return;
	}
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	if (!last)
		return;
	if (last->tid != record->tid)
		last->notifier = 0;
	last->tid = record->tid;
	last->renames = seen;
}

static __always_inline void fill_sample(struct bpf_perf_event_data *context, struct last *last,
					struct vp_raw_record *record)
{
	void *notifier = kvm_notifier_of_task((void *)bpf_get_current_task());
	__u64 id = bpf_get_current_pid_tgid();

	record->time = bpf_ktime_get_ns();
	record->kind = VP_RAW_SAMPLE;
	record->pid = id >> 32;
	record->tid = (__u32)id;
	record->host_ip = PT_REGS_IP(&context->regs);
	if (context->regs.cs & 3)
		record->flags = VP_RAW_USER;
	name_sample(last, record);

	struct kvm_vcpu *vcpu = notifier ? note_vcpu(notifier, last, record) : 0;
	if (!vcpu)
		return;
	bool hit = seen_by == VP_SEEN_BY_PERF || interrupt_hit_guest(vcpu);
	if (hit && seen_by != VP_SEEN_BY_PERF)
		record->flags |= VP_RAW_GUEST;
	note_vmcb(vcpu, hit, record);
	if (hit)
		note_guest_task(record);
}

SEC("perf_event")
int take_sample(struct bpf_perf_event_data *context)
{
	if (seen_by == VP_SEEN_BY_PERF) {
		struct vp_raw_record record = {};
		fill_sample(context, 0, &record);
		perf_output(context, &record);
		return 0;
	}
	__u32 zero = 0;
	struct vp_ring *ring;
	struct vp_raw_record *record = ring_begin(&ring);
	if (record && ring) {
		fill_sample(context, bpf_map_lookup_elem(&lasts, &zero), record);
		ring_end(ring);
	}
	return 0;
}

SEC("raw_tp/task_rename")
int note_rename(void *context)
{
	__sync_fetch_and_add(&renames, 1);
	return 0;
}

static __always_inline void fill_switch(struct task_struct *task, struct task_struct *other,
					void *notifier, __u32 kind, __u32 flags,
					struct vp_raw_record *record)
{
	record->time = bpf_ktime_get_ns();
	record->kind = kind;
	record->flags = flags;
	record->pid = BPF_CORE_READ(task, tgid);
	record->tid = BPF_CORE_READ(task, pid);
	record->other_tid = BPF_CORE_READ(other, pid);

	struct kvm_vcpu *vcpu = note_vcpu(notifier, 0, record);
	if (vcpu)
		note_vmcb(vcpu, false, record);
}

static __always_inline void note_switch(void *context, struct task_struct *task,
					struct task_struct *other, __u32 kind, __u32 flags)
{
	void *notifier = kvm_notifier_of_task(task);

	if (!notifier)
		return;
	if (seen_by == VP_SEEN_BY_PERF) {
		struct vp_raw_record record = {};
		fill_switch(task, other, notifier, kind, flags, &record);
		perf_output(context, &record);
		return;
	}
	struct vp_ring *ring;
	struct vp_raw_record *record = ring_begin(&ring);
	if (!record || !ring)
		return;
	fill_switch(task, other, notifier, kind, flags, record);
	ring_end(ring);
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
