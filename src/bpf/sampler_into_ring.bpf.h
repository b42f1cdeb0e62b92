/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of sampler.bpf.c: output of schema records to the ring; see enum vp_seen_by. */
#ifndef VP_BPF_SAMPLER_INTO_RING_H
#define VP_BPF_SAMPLER_INTO_RING_H

#include "bpf/chain.bpf.h"
#include "bpf/guest_current.bpf.h"
#include "bpf/interpreter.bpf.h"
#include "bpf/sampler_ring.bpf.h"
#include "bpf/sampler_vcpu.bpf.h"
#include "bpf/sampler_weight.bpf.h"

/* Processes with samples in user space that user space was notified of, and their names then: see
 * name_of_process(). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} announced_pids SEC(".maps");

/* Minimum time between notifications about a process. */
enum { REPORT_NS = 2000000 };

/* Incremented whenever any thread changes its name. */
__u32 renames = 1;

/* The process's name in short, by its main thread; 0: another thread. */
static __always_inline __u64 name_of_process(__u32 pid, __u32 tid)
{
	__u64 comm[2] = {};

	if (pid != tid)
		return 0;
	bpf_get_current_comm(comm, sizeof(comm));
	return comm[0] ^ comm[1];
}

/* Wakes the reader for a process that was not sampled recently, or runs another program by now: its
 * mappings are lost when it exits. */
static __always_inline void announce_process(struct vp_ring *ring, __u32 pid, __u32 tid, __u64 time)
{
	if (time - ring->reported < REPORT_NS)
		return;
	const __u64 name = name_of_process(pid, tid);
	const __u64 *known = bpf_map_lookup_elem(&announced_pids, &pid);
	if (known && (!name || *known == name))
		return;
	ring->reported = time;
	bpf_map_update_elem(&announced_pids, &pid, &name, BPF_ANY);
	bpf_ringbuf_output(&doorbell, &pid, sizeof(pid), BPF_RB_FORCE_WAKEUP);
}

/* Writes the thread of the following samples, if it differs from the previous one. */
static __always_inline void put_task(struct writer *writer, __u32 pid, __u32 tid, bool user,
				     __u64 time)
{
	struct vp_ring *ring = writer->ring;
	__u32 seen = renames;

	if (ring->last_tid == tid && ring->last_renames == seen)
		return;
	if (user)
		announce_process(ring, pid, tid, time);
	struct vp_task *record = ring_writer_take(writer, sizeof(*record));
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

/* Reads the guest's current task from guest memory; writes its name if it was not named
 * recently. */
static __always_inline void put_guest_task(struct writer *writer, __u32 pid, __u32 number,
					   struct vcpu_regs *words, __u64 time,
					   struct guest_current *ret)
{
	bool user = words->cpl == 3;
	bool known = read_guest_current(pid, number, words->as_root, user, time,
					&writer->ring->last_identity, ret);

	if (root_is_hidden() && ret->as_root) {
		words->as_root = ret->as_root;
		words->flags |= VP_HAS_AS_ROOT;
	}
	if (!known || !ret->is_new)
		return;
	struct vp_guest_task *record = ring_writer_take(writer, sizeof(*record));
	record->time = time;
	record->id = VP_ID_guest_task;
	record->flags = user ? VP_IN_USER : 0;
	record->vm = pid;
	record->guest_pid = ret->tgid;
	record->guest_tid = ret->tid;
	record->task = ret->task;
	__builtin_memcpy(record->comm, ret->comm, sizeof(record->comm));
	/* Its mappings must be read before it exits. */
	if (user)
		bpf_ringbuf_output(&doorbell, &ret->tgid, sizeof(ret->tgid), BPF_RB_FORCE_WAKEUP);
}

/* The method if the sample hit an interpreter; 0: none. Functions of a Python interpreter count as
 * the Python function, unless they have their callers. */
static __always_inline __u64 method_of_sample(struct kvm_vcpu *vcpu, __u32 pid, __u32 number,
					      const struct guest_current *current,
					      const struct vcpu_regs *words, bool with_chains)
{
	struct vp_interpreter *interpreter = find_interpreter(pid, current->tgid);

	if (!interpreter)
		return 0;
	bool in_first = words->ip >= interpreter->low && words->ip < interpreter->high;
	bool in_second = words->ip >= interpreter->loop_low && words->ip < interpreter->loop_high;
	if (interpreter->kind == VP_INTERPRETER_V8 ? !in_first && !in_second : !in_first)
		return 0;
	if (with_chains && interpreter->kind == VP_INTERPRETER_PYTHON && !in_second)
		return 0;
	return interpreted_method(interpreter, vcpu, pid, number, current->tgid, current->tid,
				  words->as_root);
}

static __always_inline __u32 host_mode(struct bpf_perf_event_data *context)
{
	return regs_are_user(&context->regs) ? VP_MODE_USER : VP_MODE_KERNEL;
}

/* Writes the common fields of all samples. */
static __always_inline struct vp_vcpu_sample *put_start(struct writer *writer, __u32 pid, __u32 tid,
							__u64 time)
{
	struct vp_vcpu_sample *record = (void *)writer->at;

	record->time = time;
	record->vm = pid;
	record->tid = tid;
	return record;
}

static __always_inline void put_guest_sample(struct writer *writer, __u32 pid, __u32 tid,
					     __u32 number, const struct vcpu_regs *words,
					     const struct guest_current *current, __u64 time)
{
	struct vp_guest_sample *record = (void *)put_start(writer, pid, tid, time);
	record->id = VP_ID_guest_sample;
	record->flags = words->flags | (current->known ? VP_BY_MEMORY : 0);
	record->mode = words->cpl == 3 ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL;
	record->vendor = vendor;
	record->vcpu = number;
	record->ip = words->ip;
	record->as_root = words->as_root;
	record->exit_reason = words->exit_reason;
	record->cpl = words->cpl;
	record->guest_pid = current->tgid;
	record->guest_tid = current->tid;
	writer->used += sizeof(*record);
}

static __always_inline void put_vcpu_sample(struct writer *writer, __u32 pid, __u32 tid,
					    __u32 number, const struct vcpu_regs *words,
					    __u64 host_ip, __u32 mode, __u64 time)
{
	struct vp_vcpu_sample *record = put_start(writer, pid, tid, time);

	record->id = VP_ID_vcpu_sample;
	record->flags = words->flags & VP_HAS_EXIT_REASON;
	record->mode = mode;
	record->vendor = vendor;
	record->vcpu = number;
	record->ip = host_ip;
	record->exit_reason = words->exit_reason;
	record->reserved = 0;
	writer->used += sizeof(*record);
}

static __always_inline void put_host_sample(struct writer *writer, __u32 pid, __u32 tid,
					    __u64 host_ip, __u32 mode, __u64 time)
{
	struct vp_host_sample *record = (void *)put_start(writer, pid, tid, time);

	record->id = VP_ID_host_sample;
	record->flags = 0;
	record->mode = mode;
	record->reserved = 0;
	record->reserved_2 = 0;
	record->ip = host_ip;
	writer->used += sizeof(*record);
}

/* Writes the stacks before the sample. */
static __always_inline void put_chains(struct writer *writer, struct bpf_perf_event_data *context,
				       const struct chain_subject *subject,
				       const struct guest_current *current, __u32 tid, bool hit,
				       __u64 time)
{
	struct chain_maker *maker = chain_begin(tid, time, writer->used);

	if (!maker)
		return;
	if (subject)
		chain_of_guest(maker, subject, current);
	if (!hit)
		chain_of_host(maker, context);
	__u64 size = chain_size(maker);
	writer->at += size;
	writer->used += size;
}

static __always_inline void put_sample_of_vcpu(struct writer *writer,
					       struct bpf_perf_event_data *context,
					       struct kvm_vcpu *vcpu, void *notifier, __u32 pid,
					       __u32 tid, __u64 time, bool with_chains)
{
	__u64 ip = PT_REGS_IP(&context->regs);
	__u32 number = number_in_ring(writer->ring, notifier, vcpu);
	bool hit = may_have_hit_guest(writer->ring, vcpu, &context->regs);
	struct guest_current current = {};
	struct vcpu_regs words;

	read_vcpu_again(writer->ring, vcpu, hit, hit || with_chains, &words);
	hit = hit && exit_was_by_interrupt(&words);
	if (by_memory && (hit || with_chains))
		put_guest_task(writer, pid, number, &words, time, &current);
	__u64 method = hit && current.known && words.cpl == 3
			   ? method_of_sample(vcpu, pid, number, &current, &words, with_chains)
			   : 0;
	if (with_chains) {
		struct chain_subject subject = {.vcpu = vcpu,
						.pid = pid,
						.number = number,
						.cpl = words.cpl,
						.flags = words.flags,
						.ip = words.ip,
						.as_root = words.as_root};
		put_chains(writer, context, &subject, &current, tid, hit, time);
	}
	if (method) {
		words.ip = method;
		words.flags |= VP_AT_METHOD;
	}
	if (hit)
		put_guest_sample(writer, pid, tid, number, &words, &current, time);
	else
		put_vcpu_sample(writer, pid, tid, number, &words, ip, host_mode(context), time);
}

/* Writes the weight of the next sample, if it is not the default. */
static __always_inline void put_weight(struct writer *writer, __u64 weight, __u64 time)
{
	if (!weight)
		return;
	struct vp_sample_period *record = ring_writer_take(writer, sizeof(*record));
	record->time = time;
	record->id = VP_ID_sample_period;
	record->reserved = 0;
	record->events = weight;
}

/* Only for the next program that writes on this pCPU: an NMI cannot wait. */
static __always_inline void hold_sample(struct vp_ring *ring, __u64 time, __u64 ip, __u64 weight)
{
	if (ring->held.time) {
		ring->lost++;
		return;
	}
	ring->held.ip = ip;
	ring->held.weight = weight;
	store_after(&ring->held.time, time);
}

static __always_inline void sample_into_ring(struct bpf_perf_event_data *context, bool with_chains)
{
	struct task_struct *current = bpf_get_current_task_btf();
	void *notifier = kvm_notifier_of_known_task(current);
	__u64 time = bpf_ktime_get_ns();
	__u32 pid = current->tgid, tid = current->pid;
	struct vp_ring *ring = ring_here();
	struct writer writer;

	if (!ring)
		return;
	__u64 weight = unusual_weight(context, &ring->busy, time);
	if (seen_by == VP_SEEN_BY_NMI && ring->writing) {
		hold_sample(ring, time, PT_REGS_IP(&context->regs), weight);
		return;
	}
	if (!ring_writer_begin(&writer, ring, with_chains ? VP_RING_SPARE : VP_SAMPLE_SPARE))
		return;
	put_task(&writer, pid, tid, regs_are_user(&context->regs), time);
	put_weight(&writer, weight, time);
	struct kvm_vcpu *vcpu = notifier ? vcpu_of_notifier(notifier) : 0;
	if (vcpu) {
		put_sample_of_vcpu(&writer, context, vcpu, notifier, pid, tid, time, with_chains);
	} else {
		if (with_chains && pid)
			put_chains(&writer, context, 0, 0, tid, false, time);
		put_host_sample(&writer, pid, tid, PT_REGS_IP(&context->regs), host_mode(context),
				time);
	}
	ring_writer_end(&writer);
}

/* Writes the sample of an NMI that came meanwhile: it hit the scheduler, in the same thread. */
static __always_inline void put_held_sample(struct vp_ring *ring)
{
	struct task_struct *current = bpf_get_current_task_btf();
	void *notifier = kvm_notifier_of_known_task(current);
	struct kvm_vcpu *vcpu = notifier ? vcpu_of_notifier(notifier) : 0;
	const struct vp_held_sample held = ring->held;
	__u32 pid = current->tgid, tid = current->pid;
	struct vcpu_regs words;
	struct writer writer;

	ring->held.time = 0;
	if (!ring_writer_begin(&writer, ring, VP_SAMPLE_SPARE))
		return;
	put_task(&writer, pid, tid, false, held.time);
	put_weight(&writer, held.weight, held.time);
	if (vcpu) {
		__u32 number = number_in_ring(ring, notifier, vcpu);
		read_vcpu_again(ring, vcpu, false, false, &words);
		put_vcpu_sample(&writer, pid, tid, number, &words, held.ip, VP_MODE_KERNEL,
				held.time);
	} else {
		put_host_sample(&writer, pid, tid, held.ip, VP_MODE_KERNEL, held.time);
	}
	ring_writer_end(&writer);
}

static __always_inline void switch_into_ring(struct task_struct *task, struct task_struct *other,
					     void *notifier, __u32 id, __u32 flags)
{
	struct kvm_vcpu *vcpu = vcpu_of_notifier(notifier);
	struct vp_ring *ring = ring_here();
	struct vcpu_regs words;
	struct writer writer;

	if (!ring || !vcpu || !ring_writer_begin(&writer, ring, VP_SAMPLE_SPARE))
		return;
	/* vcpu_in has the same fields in the same order. */
	struct vp_vcpu_out *record = ring_writer_take(&writer, sizeof(*record));
	__u32 number = number_in_ring(ring, notifier, vcpu);
	read_vcpu_again(ring, vcpu, false, false, &words);
	record->time = bpf_ktime_get_ns();
	record->id = id;
	record->flags = words.flags | flags;
	record->vm = task->tgid;
	record->tid = task->pid;
	record->reserved = 0;
	record->vendor = vendor;
	record->vcpu = number;
	record->exit_reason = words.exit_reason;
	record->other_tid = other->pid;
	ring_writer_end(&writer);
	if (ring->held.time)
		put_held_sample(ring);
}

#endif
