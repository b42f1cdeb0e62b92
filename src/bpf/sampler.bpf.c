/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes the samples: one program on each pCPU's trigger, one on the scheduler's switches (only
 * switches of vCPU threads leave a record). See bpf/sampler.h for the two ways that records go.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/arch.bpf.h"
#include "bpf/chain.bpf.h"
#include "bpf/guest_current.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/sampler.h"
#include "schema/records.h"

/* By perf: the event of each is opened with PERF_SAMPLE_IP. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} records SEC(".maps");

/* A struct vp_ring and its bytes per pCPU; by perf, only the header is used. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct vp_ring) + VP_RING_SPARE);
} rings SEC(".maps");

/* Wakes the reader when a ring is half full. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

/* Processes whose user space was hit: user space was told of them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} told_of SEC(".maps");

/* Set by the loader (enum vp_seen_by). */
const volatile __u32 seen_by = VP_SEEN_BY_PERF;
const volatile __u64 ring_size = 1;
/* Whether guests' memory is asked who runs. */
const volatile __u32 by_memory = 0;

/* So often at most is user space told of a process. */
enum { TELL_NS = 2000000 };

/* Whenever any thread changes its name. */
__u32 renames = 1;

/* What the vCPU that a thread is inside of says of itself. */
struct vcpu_words {
	__u32 exit_reason;
	__u32 flags; /* enum vp_flag */
	__u32 cpl;
	__u64 as_root;
	__u64 ip;
};

/* Records on their way into the pCPU's ring: `at` is where the next goes. */
struct place {
	struct vp_ring *ring;
	__u64 size, head; /* of the ring; at the start */
	__u32 used;
	char *at;
};

static __always_inline struct vp_ring *ring_here(void)
{
	__u32 pcpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&rings, &pcpu);
}

/* Makes room for `spare` bytes; false, and counted, if there is none. */
static __always_inline bool place_begin(struct place *place, __u32 spare)
{
	struct vp_ring *ring = ring_here();

	if (!ring)
		return false;
	place->ring = ring;
	place->size = ring_size;
	place->head = ring->head;
	place->used = 0;
	if (place->head + spare - *(volatile __u64 *)&ring->tail > place->size) {
		ring->lost++;
		return false;
	}
	place->at = (char *)(ring + 1) + (place->head & (place->size - 1));
	return true;
}

/* A record of that size goes here. */
static __always_inline void *place_take(struct place *place, __u32 size)
{
	void *record = place->at;

	place->at += size;
	place->used += size;
	return record;
}

/* Hands over what was written. */
static __always_inline void place_end(struct place *place)
{
	struct vp_ring *ring = place->ring;
	__u64 size = place->size, head = place->head;
	__u64 end = (head & (size - 1)) + place->used, next = head + place->used;

	if (end >= size) {
		ring->lap_end = end;
		next = (head | (size - 1)) + 1;
	}
	store_after(&ring->head, next);
	__u64 half = ring->tail + size / 2;
	if (head < half && next >= half)
		bpf_ringbuf_output(&doorbell, &next, sizeof(next), BPF_RB_FORCE_WAKEUP);
}

/* What the VMCB says: the last exit, and for a sample that hit the guest where that was. */
static __always_inline void read_vmcb(struct kvm_vcpu *vcpu, void *vmcb, __u32 reason,
				      bool with_place, struct vcpu_words *ret)
{
	struct vmcb_place place;

	ret->exit_reason = reason;
	ret->flags |= VP_HAS_EXIT_REASON;
	if (!with_place || !read_place(vcpu, vmcb, &place, &ret->cpl))
		return;
	ret->as_root = place.cr3;
	ret->ip = place.rip;
	ret->flags |= VP_HAS_AS_ROOT | VP_HAS_CPL;
}

static __always_inline void read_vcpu(struct kvm_vcpu *vcpu, bool with_place,
				      struct vcpu_words *ret)
{
	void *vmcb = vendor == VP_VENDOR_AMD ? vmcb_of(vcpu) : 0;
	__u64 reason;

	*ret = (struct vcpu_words){};
	if (read_vmx_exit_reason(vcpu, &ret->exit_reason))
		ret->flags = VP_HAS_EXIT_REASON;
	else if (read_vmcb_reason(vmcb, &reason))
		read_vmcb(vcpu, vmcb, reason, with_place, ret);
}

/* The same of the vCPU that the sample before was of. */
static __always_inline void read_vcpu_again(struct vp_ring *ring, struct kvm_vcpu *vcpu,
					    bool with_place, struct vcpu_words *ret)
{
	__u64 reason;
	void *vmcb = read_exit_reason(vcpu, &ring->last_vmcb, &reason);

	*ret = (struct vcpu_words){};
	if (vmcb)
		read_vmcb(vcpu, vmcb, reason, with_place, ret);
}

/* Wakes the reader for a process that was not sampled lately: its mappings are gone when it is. */
static __always_inline void tell_of_process(struct vp_ring *ring, __u32 pid, __u64 time)
{
	__u8 one = 1;

	if (time - ring->told < TELL_NS || bpf_map_lookup_elem(&told_of, &pid))
		return;
	ring->told = time;
	bpf_map_update_elem(&told_of, &pid, &one, BPF_ANY);
	bpf_ringbuf_output(&doorbell, &pid, sizeof(pid), BPF_RB_FORCE_WAKEUP);
}

/* Says whose the following samples are, if those before were another's. */
static __always_inline void put_task(struct place *place, __u32 pid, __u32 tid, bool user,
				     __u64 time)
{
	struct vp_ring *ring = place->ring;
	__u32 seen = renames;

	if (ring->last_tid == tid && ring->last_renames == seen)
		return;
	if (user)
		tell_of_process(ring, pid, time);
	struct vp_task *record = place_take(place, sizeof(*record));
	record->time = time;
	record->id = VP_ID_task;
	record->reserved = 0;
	record->pid = pid;
	record->tid = tid;
	record->reserved_2 = 0;
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	if (ring->last_tid != tid)
		ring->last_notifier = 0;
	ring->last_tid = tid;
	ring->last_renames = seen;
}

static __always_inline __u32 vcpu_number(struct kvm_vcpu *vcpu)
{
	return vcpu ? BPF_CORE_READ(vcpu, vcpu_id) & VP_VCPU_UNKNOWN : VP_VCPU_UNKNOWN;
}

/* The number of the vCPU, which the sample before may have read already. */
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
 * Whether the interrupt hit the guest. KVM lets interrupts of the guest through at one instruction,
 * where its mark is always set: seen there once, the mark need not be read again.
 */
static __always_inline bool hit_guest(struct vp_ring *ring, struct kvm_vcpu *vcpu, __u64 ip)
{
	if (ring->hit_ip == ip)
		return true;
	if (!interrupt_hit_guest(vcpu))
		return false;
	ring->hit_ip = ip;
	return true;
}

/* Who runs in the guest, by the guest's own memory; names a thread that was not named lately. */
static __always_inline void put_guest_task(struct place *place, __u32 pid, __u32 number,
					   const struct vcpu_words *words, __u64 time,
					   struct guest_current *ret)
{
	bool user = words->cpl == 3;

	if (!read_guest_current(pid, number, words->as_root, user, time, ret) || !ret->is_new)
		return;
	struct vp_guest_task *record = place_take(place, sizeof(*record));
	record->time = time;
	record->id = VP_ID_guest_task;
	record->flags = user ? VP_IN_USER : 0;
	record->pid = pid;
	record->guest_pid = ret->tgid;
	record->guest_tid = ret->tid;
	record->task = ret->task;
	__builtin_memcpy(record->comm, ret->comm, sizeof(record->comm));
	/* Its mappings are to be read before it ends. */
	if (user)
		bpf_ringbuf_output(&doorbell, &ret->tgid, sizeof(ret->tgid), BPF_RB_FORCE_WAKEUP);
}

static __always_inline __u32 host_mode(struct bpf_perf_event_data *context)
{
	return regs_are_user(&context->regs) ? VP_MODE_USER : VP_MODE_KERNEL;
}

/* What all samples begin with. */
static __always_inline struct vp_vcpu_sample *put_start(struct place *place, __u32 pid, __u32 tid,
							__u64 time)
{
	struct vp_vcpu_sample *record = (void *)place->at;

	record->time = time;
	record->pid = pid;
	record->tid = tid;
	return record;
}

static __always_inline void put_guest_sample(struct place *place, __u32 pid, __u32 tid,
					     __u32 number, const struct vcpu_words *words,
					     const struct guest_current *current, __u64 host_ip,
					     __u64 time)
{
	struct vp_guest_sample *record = (void *)put_start(place, pid, tid, time);
	record->id = VP_ID_guest_sample;
	record->flags = words->flags | (current->known ? VP_BY_MEMORY : 0);
	record->mode = words->cpl == 3 ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL;
	record->vendor = vendor;
	record->vcpu = number;
	record->ip = words->ip;
	record->host_ip = host_ip;
	record->as_root = words->as_root;
	record->exit_reason = words->exit_reason;
	record->cpl = words->cpl;
	record->guest_pid = current->tgid;
	record->guest_tid = current->tid;
	place->used += sizeof(*record);
}

static __always_inline void put_vcpu_sample(struct place *place, __u32 pid, __u32 tid, __u32 number,
					    const struct vcpu_words *words, __u64 host_ip,
					    __u32 mode, __u64 time)
{
	struct vp_vcpu_sample *record = put_start(place, pid, tid, time);

	record->id = VP_ID_vcpu_sample;
	record->flags = words->flags;
	record->mode = mode;
	record->vendor = vendor;
	record->vcpu = number;
	record->ip = host_ip;
	record->exit_reason = words->exit_reason;
	record->reserved = 0;
	place->used += sizeof(*record);
}

static __always_inline void put_host_sample(struct place *place, __u32 pid, __u32 tid,
					    __u64 host_ip, __u32 mode, __u64 time)
{
	struct vp_host_sample *record = (void *)put_start(place, pid, tid, time);

	record->id = VP_ID_host_sample;
	record->flags = 0;
	record->mode = mode;
	record->reserved = 0;
	record->reserved_2 = 0;
	record->ip = host_ip;
	place->used += sizeof(*record);
}

/* Puts the call chains of a sample before it. */
static __always_inline void put_chain(struct place *place, const struct chain_maker *maker)
{
	__u64 size = chain_size(maker);

	if (bpf_probe_read_kernel(place->at, size, maker->bytes))
		return;
	place->at += size;
	place->used += size;
}

static __always_inline void put_chains(struct place *place, struct bpf_perf_event_data *context,
				       const struct chain_subject *subject,
				       const struct guest_current *current, __u32 tid, bool hit,
				       __u64 time)
{
	struct chain_maker *maker = chain_begin(tid, time);

	if (!maker)
		return;
	if (subject)
		chain_of_guest(maker, subject, current);
	if (!hit)
		chain_of_host(maker, context);
	put_chain(place, maker);
}

static __always_inline void put_sample_of_vcpu(struct place *place,
					       struct bpf_perf_event_data *context,
					       struct kvm_vcpu *vcpu, void *notifier, __u32 pid,
					       __u32 tid, __u64 time, bool with_chains)
{
	__u64 ip = PT_REGS_IP(&context->regs);
	__u32 number = number_in_ring(place->ring, notifier, vcpu);
	bool hit = hit_guest(place->ring, vcpu, ip);
	struct guest_current current = {};
	struct vcpu_words words;

	read_vcpu_again(place->ring, vcpu, hit || with_chains, &words);
	if (by_memory && (hit || with_chains))
		put_guest_task(place, pid, number, &words, time, &current);
	if (with_chains) {
		struct chain_subject subject = {.vcpu = vcpu,
						.pid = pid,
						.number = number,
						.cpl = words.cpl,
						.flags = words.flags,
						.ip = words.ip,
						.as_root = words.as_root};
		put_chains(place, context, &subject, &current, tid, hit, time);
	}
	if (hit)
		put_guest_sample(place, pid, tid, number, &words, &current, ip, time);
	else
		put_vcpu_sample(place, pid, tid, number, &words, ip, host_mode(context), time);
}

static __always_inline void sample_into_ring(struct bpf_perf_event_data *context, bool with_chains)
{
	struct task_struct *current = bpf_get_current_task_btf();
	void *notifier = kvm_notifier_of_known_task(current);
	__u64 time = bpf_ktime_get_ns();
	__u32 pid = current->tgid, tid = current->pid;
	struct place place;

	if (!place_begin(&place, with_chains ? VP_RING_SPARE : VP_SAMPLE_SPARE))
		return;
	put_task(&place, pid, tid, regs_are_user(&context->regs), time);
	struct kvm_vcpu *vcpu = notifier ? vcpu_of_notifier(notifier) : 0;
	if (vcpu) {
		put_sample_of_vcpu(&place, context, vcpu, notifier, pid, tid, time, with_chains);
	} else {
		if (with_chains && pid)
			put_chains(&place, context, 0, 0, tid, false, time);
		put_host_sample(&place, pid, tid, PT_REGS_IP(&context->regs), host_mode(context),
				time);
	}
	place_end(&place);
}

static __always_inline void put_raw(void *context, struct vp_raw_record *record)
{
	struct vp_ring *ring;

	if (bpf_perf_event_output(context, &records, BPF_F_CURRENT_CPU, record, sizeof(*record)) &&
	    (ring = ring_here()))
		ring->lost++;
}

/* Adds the vCPU that the thread is inside of. */
static __always_inline void fill_vcpu(void *notifier, bool with_place, struct vp_raw_record *record,
				      __u64 *guest_ip)
{
	struct kvm_vcpu *vcpu = vcpu_of_notifier(notifier);
	struct vcpu_words words;

	record->flags |= VP_RAW_ON_VCPU;
	record->vcpu = vcpu_number(vcpu);
	if (!vcpu)
		return;
	read_vcpu(vcpu, with_place, &words);
	record->flags |= words.flags;
	record->exit_reason = words.exit_reason;
	record->as_root = words.as_root;
	*guest_ip = words.ip;
	record->cpl = words.cpl;
}

static __always_inline void fill_guest_task(struct vp_raw_record *record)
{
	struct guest_current current;

	if (!read_guest_current(record->pid, record->vcpu, record->as_root, record->cpl == 3,
				record->time, &current))
		return;
	record->guest_task = current.task;
	record->guest_pid = current.tgid;
	record->guest_tid = current.tid;
	__builtin_memcpy(record->guest_comm, current.comm, sizeof(record->guest_comm));
	record->flags |= VP_BY_MEMORY | (current.is_new ? VP_RAW_NEW_TASK : 0);
}

/* The guest's side too of what may turn out to have hit the host: only perf knows. */
static __always_inline void send_chains(struct bpf_perf_event_data *context, void *notifier,
					const struct vp_raw_record *record, __u64 guest_ip)
{
	struct chain_maker *maker = chain_begin(record->tid, record->time);
	struct kvm_vcpu *vcpu = notifier ? vcpu_of_notifier(notifier) : 0;

	if (!maker)
		return;
	if (vcpu) {
		struct guest_current current = {.known = record->flags & VP_BY_MEMORY,
						.tgid = record->guest_pid,
						.tid = record->guest_tid};
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
	maker->raw.kind = VP_RAW_CHAIN;
	bpf_perf_event_output(context, &records, BPF_F_CURRENT_CPU, &maker->raw,
			      sizeof(maker->raw) + chain_size(maker));
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
	};

	bpf_get_current_comm(record.comm, sizeof(record.comm));
	if (notifier) {
		fill_vcpu(notifier, true, &record, &guest_ip);
		if (by_memory)
			fill_guest_task(&record);
	}
	if (with_chains && record.pid)
		send_chains(context, notifier, &record, guest_ip);
	put_raw(context, &record);
}

SEC("perf_event")
int take_sample(struct bpf_perf_event_data *context)
{
	if (seen_by == VP_SEEN_BY_IRQ)
		sample_into_ring(context, false);
	else
		sample_by_perf(context, false);
	return 0;
}

/* One for each way, since both would want more stack than there is. */
SEC("perf_event")
int chains_into_ring(struct bpf_perf_event_data *context)
{
	sample_into_ring(context, true);
	return 0;
}

SEC("perf_event")
int chains_by_perf(struct bpf_perf_event_data *context)
{
	sample_by_perf(context, true);
	return 0;
}

SEC("raw_tp/task_rename")
int note_rename(void *context)
{
	__sync_fetch_and_add(&renames, 1);
	return 0;
}

static __always_inline void switch_into_ring(struct task_struct *task, struct task_struct *other,
					     void *notifier, __u32 id, __u32 flags)
{
	struct kvm_vcpu *vcpu = vcpu_of_notifier(notifier);
	struct vcpu_words words;
	struct place place;

	if (!vcpu || !place_begin(&place, VP_SAMPLE_SPARE))
		return;
	/* vcpu_in has the same fields in the same order. */
	struct vp_vcpu_out *record = place_take(&place, sizeof(*record));
	read_vcpu(vcpu, false, &words);
	record->time = bpf_ktime_get_ns();
	record->id = id;
	record->flags = words.flags | flags;
	record->pid = task->tgid;
	record->tid = task->pid;
	record->reserved = 0;
	record->vendor = vendor;
	record->vcpu = vcpu_number(vcpu);
	record->exit_reason = words.exit_reason;
	record->other_tid = other->pid;
	place_end(&place);
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

static __always_inline void note_switch(void *context, struct task_struct *task,
					struct task_struct *other, void *notifier, __u32 id,
					__u32 flags)
{
	if (seen_by == VP_SEEN_BY_IRQ)
		switch_into_ring(task, other, notifier, id, flags);
	else
		switch_by_perf(context, task, other, notifier, id, flags);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_vcpu_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	void *out = kvm_notifier_of_known_task(prev), *in = kvm_notifier_of_known_task(next);

	if (out)
		note_switch(ctx, prev, next, out, VP_ID_vcpu_out,
			    !preempted && task_is_blocked(prev) ? VP_BLOCKED : 0);
	if (in)
		note_switch(ctx, next, prev, in, VP_ID_vcpu_in, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
