/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of trace.bpf.c: records on their way into the pCPU's ring, and the names of threads. */
#ifndef VP_BPF_TRACE_RING_H
#define VP_BPF_TRACE_RING_H

#include "bpf/kernel_ring.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/trace.h"
#include "schema/trace_records.h"

/*
 * One of the kernel's rings per pCPU. A program here may be interrupted by another one, or, where
 * tracepoints are preemptible, lose the pCPU to one: the kernel's ring takes room for a record
 * under a lock; the sampler's ring, which costs less, has one writer at a time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kernel_ring);
} rings SEC(".maps");

/* Wakes the reader now and then; a ring that always has something would never let it sleep. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_trace_cpu);
} cpus SEC(".maps");

/* Set by the loader: so many bytes of records wake the reader, a power of two. */
const volatile __u64 ring_part = 4096;

volatile __u32 enabled;

static __always_inline struct vp_trace_cpu *this_cpu(void)
{
	__u32 here = bpf_get_smp_processor_id();

	return enabled ? bpf_map_lookup_elem(&cpus, &here) : 0;
}

/* This pCPU was not online when the rings were made. */
static __noinline int call_for_ring(void)
{
	__u64 none = 0;

	bpf_ringbuf_output(&doorbell, &none, sizeof(none), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* False, and counted, if there is no room. */
static __always_inline bool put(struct vp_trace_cpu *cpu, const void *record, __u32 size)
{
	__u32 here = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &here);

	if (!ring || bpf_ringbuf_output(ring, (void *)record, size, BPF_RB_NO_WAKEUP)) {
		if (!ring && !cpu->lost)
			call_for_ring();
		__sync_fetch_and_add(&cpu->lost, 1);
		return false;
	}
	/* What interrupts this may be left out of the sum: the reader looks once a second anyhow.
	 */
	__u64 before = cpu->written, after = before + size + BPF_RINGBUF_HDR_SZ;
	cpu->written = after;
	if ((before ^ after) & ~(ring_part - 1))
		bpf_ringbuf_output(&doorbell, &after, sizeof(after), BPF_RB_FORCE_WAKEUP);
	return true;
}

#define PUT(cpu, event, ...) PUT_AT(cpu, event, bpf_ktime_get_ns(), __VA_ARGS__)
#define PUT_AT(cpu, event, when, ...)                                                              \
	({                                                                                         \
		struct vp_trace_##event record = {.time = (when),                                  \
						  .id = VP_TRACE_ID_##event,                       \
						  .size = VP_TRACE_SIZE_##event,                   \
						  __VA_ARGS__};                                    \
		put(cpu, &record, VP_TRACE_SIZE_##event);                                          \
	})

static __always_inline struct vp_trace_name *name_place(struct vp_trace_cpu *cpu, __u32 tid)
{
	return &cpu->names[tid & (VP_TRACE_NAMES - 1)];
}

static __noinline int put_name(struct vp_trace_cpu *cpu, struct vp_task *record, __u32 digest)
{
	if (!cpu || !record)
		return 0;
	record->time = bpf_ktime_get_ns();
	record->id = VP_ID_task;
	if (!put(cpu, record, sizeof(*record)))
		return 0;
	struct vp_trace_name *name = name_place(cpu, record->tid);
	name->tid = record->tid;
	name->digest = digest;
	return 0;
}

/* The idle task's name is known: it has a pCPU's number in it. */
static __always_inline void name_task(struct vp_trace_cpu *cpu, struct task_struct *task)
{
	__u32 tid = task->pid;
	const __u64 *comm = (const __u64 *)task->comm;
	__u64 both = comm[0] ^ comm[1] * 31;
	__u32 digest = both ^ both >> 32;
	struct vp_trace_name *name = name_place(cpu, tid);

	if (!tid || (name->tid == tid && name->digest == digest))
		return;
	struct vp_task record = {.pid = task->tgid, .tid = tid};
	__builtin_memcpy(record.comm, comm, sizeof(record.comm));
	put_name(cpu, &record, digest);
}

/* The same of the thread that has the pCPU, once. */
static __always_inline void name_current(struct vp_trace_cpu *cpu, __u64 id)
{
	__u32 tid = (__u32)id;

	if (!tid || name_place(cpu, tid)->tid == tid)
		return;
	struct vp_task record = {.pid = id >> 32, .tid = tid};
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	put_name(cpu, &record, 0);
}

#endif
