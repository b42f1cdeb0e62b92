/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of trace.bpf.c: output to the pCPU's ring, and thread names. */
#ifndef VP_BPF_TRACE_RING_H
#define VP_BPF_TRACE_RING_H

#include "bpf/arch.bpf.h"
#include "bpf/kernel_ring.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/trace_abi.h"
#include "schema/trace_records.h"

/* Sized by the loader. */
struct trace_pages {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct vp_trace_page));
};

/* One ring per pCPU: see struct vp_trace_page. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct trace_pages);
} rings SEC(".maps");

/*
 * Side buffer: a program may interrupt another one that is writing to the pCPU's ring, or preempt
 * it where tracepoints are preemptible. Its record is written to a BPF ring buffer, which has a
 * lock and costs more; the reader sorts it in by time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kernel_ring);
} asides SEC(".maps");

/* Wakes the reader; a ring that is never empty would keep it awake. */
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

/* Set by the loader: number of pages of a ring, a power of two, and number of pages that wakes the
 * reader. */
const volatile __u32 ring_pages = 1, ring_part = 1;

volatile __u32 enabled;

static __always_inline struct vp_trace_cpu *this_cpu(void)
{
	__u32 here = bpf_get_smp_processor_id();

	return enabled ? bpf_map_lookup_elem(&cpus, &here) : 0;
}

/* This pCPU was not online when the rings were created. */
static __noinline int call_for_ring(void)
{
	__u64 none = 0;

	bpf_ringbuf_output(&doorbell, &none, sizeof(none), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* The program that increments the counter from 0 writes to the pages: never two at a time, whatever
 * interrupts. (An atomic add that returns the old value is missing in 5.10.) */
static __always_inline bool begin(struct vp_trace_cpu *cpu)
{
	__sync_fetch_and_add(&cpu->busy, 1);
	return *(volatile __u64 *)&cpu->busy == 1;
}

/* Returns `done`; false is counted as a loss. */
static __always_inline bool end(struct vp_trace_cpu *cpu, bool done)
{
	__sync_fetch_and_add(&cpu->busy, -1);
	if (!done)
		__sync_fetch_and_add(&cpu->lost, 1);
	return done;
}

/* The next page is free: its contents were read. */
static __always_inline bool is_free(const struct vp_trace_cpu *cpu, __u64 head)
{
	return head - *(volatile const __u64 *)&cpu->tail <=
	       (__u64)(ring_pages - 1) * VP_TRACE_PAGE;
}

/* The page for the next record; 0: no ring, or full. */
static __always_inline struct vp_trace_page *page_for(struct vp_trace_cpu *cpu, __u64 head)
{
	__u32 here = cpu->number, number = (__u32)(head / VP_TRACE_PAGE) & (ring_pages - 1);

	if (head % VP_TRACE_PAGE == 0 && !is_free(cpu, head))
		return 0;
	void *ring = bpf_map_lookup_elem(&rings, &here);
	if (!ring && !cpu->lost)
		call_for_ring();
	return ring ? bpf_map_lookup_elem(ring, &number) : 0;
}

static __always_inline void finish_page(struct vp_trace_cpu *cpu, struct vp_trace_page *page,
					__u64 head, __u64 size)
{
	__u64 next = head / VP_TRACE_PAGE + 1;

	page->end = head % VP_TRACE_PAGE + size;
	store_after(&cpu->head, next * VP_TRACE_PAGE);
	if (!(next % ring_part))
		bpf_ringbuf_output(&doorbell, &next, sizeof(next), BPF_RB_FORCE_WAKEUP);
}

/* Publishes the record: it becomes visible before the new head. */
static __always_inline void publish(struct vp_trace_cpu *cpu, struct vp_trace_page *page,
				    __u64 head, __u64 size)
{
	if (head % VP_TRACE_PAGE + size >= VP_TRACE_PAGE)
		finish_page(cpu, page, head, size);
	else
		store_after(&cpu->head, head + size);
}

static __always_inline bool put_aside(struct vp_trace_cpu *cpu, void *record, __u32 size)
{
	__u32 here = cpu->number;
	void *ring = bpf_map_lookup_elem(&asides, &here);

	return ring && !bpf_ringbuf_output(ring, record, size, BPF_RB_NO_WAKEUP);
}

/* Writes the first `size` bytes of a record; false: full, counted as lost. It is stored field by
 * field: copying bytes, or passing its address, would go through the stack. */
#define PUT_RECORD(cpu, record, size)                                                              \
	({                                                                                         \
		bool done = false;                                                                 \
		_Static_assert(sizeof(record) <= VP_TRACE_SPARE, "a record has room");             \
		if (begin(cpu)) {                                                                  \
			__u64 head = (cpu)->head;                                                  \
			struct vp_trace_page *page = page_for(cpu, head);                          \
			if (page) {                                                                \
				char *at = page->records + head % VP_TRACE_PAGE;                   \
				*(__typeof__(record) *)at = (record);                              \
				publish(cpu, page, head, size);                                    \
				done = true;                                                       \
			}                                                                          \
		} else {                                                                           \
			__typeof__(record) copy = (record);                                        \
			done = put_aside(cpu, &copy, size);                                        \
		}                                                                                  \
		end(cpu, done);                                                                    \
	})

#define PUT(cpu, event, ...) PUT_AT(cpu, event, bpf_ktime_get_ns(), __VA_ARGS__)
#define PUT_AT(cpu, event, when, ...)                                                              \
	({                                                                                         \
		struct vp_trace_##event record = {.time = (when),                                  \
						  .id = VP_TRACE_ID_##event,                       \
						  .size = VP_TRACE_SIZE_##event,                   \
						  __VA_ARGS__};                                    \
		PUT_RECORD(cpu, record, VP_TRACE_SIZE_##event);                                    \
	})

static __always_inline struct vp_trace_name *name_slot(struct vp_trace_cpu *cpu, __u32 tid)
{
	return &cpu->names[tid & (VP_TRACE_NAMES - 1)];
}

static __noinline int put_name(struct vp_trace_cpu *cpu, struct vp_task *record, __u32 digest)
{
	if (!cpu || !record)
		return 0;
	record->time = bpf_ktime_get_ns();
	record->id = VP_ID_task;
	if (!PUT_RECORD(cpu, *record, sizeof(*record)))
		return 0;
	struct vp_trace_name *name = name_slot(cpu, record->tid);
	name->tid = record->tid;
	name->digest = digest;
	return 0;
}

/* The idle task's name is known: it contains the pCPU's number. */
static __always_inline void name_task(struct vp_trace_cpu *cpu, struct task_struct *task)
{
	__u32 tid = task->pid;
	const __u64 *comm = (const __u64 *)task->comm;
	__u64 both = comm[0] ^ comm[1] * 31;
	__u32 digest = both ^ both >> 32;
	struct vp_trace_name *name = name_slot(cpu, tid);

	if (!tid || (name->tid == tid && name->digest == digest))
		return;
	struct vp_task record = {.pid = task->tgid, .tid = tid};
	__builtin_memcpy(record.comm, comm, sizeof(record.comm));
	put_name(cpu, &record, digest);
}

/* The same for the running thread, once. */
static __always_inline void name_current(struct vp_trace_cpu *cpu, __u64 id)
{
	__u32 tid = (__u32)id;

	if (!tid || name_slot(cpu, tid)->tid == tid)
		return;
	struct vp_task record = {.pid = id >> 32, .tid = tid};
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	put_name(cpu, &record, 0);
}

#endif
