/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of sampler.bpf.c: the pCPU's ring, mapped by user space, and the doorbell that wakes its
 * reader. */
#ifndef VP_BPF_SAMPLER_RING_H
#define VP_BPF_SAMPLER_RING_H

#include "bpf/arch.bpf.h"
#include "bpf/sampler_abi.h"

/* Per pCPU a struct vp_ring and its bytes; by perf, only the header is used. */
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

/* Set by the loader. */
const volatile __u64 ring_size = 1;

/* Writer of records to the pCPU's ring; `at`: position of the next record. */
struct writer {
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

/* From here on, an NMI holds its sample. */
static __always_inline void ring_set_writing(struct vp_ring *ring, __u32 writing)
{
	barrier();
	*(volatile __u32 *)&ring->writing = writing;
	barrier();
}

/* Reserves `spare` bytes; false: the ring is full, which is counted as lost. */
static __always_inline bool ring_writer_begin(struct writer *writer, struct vp_ring *ring,
					      __u32 spare)
{
	ring_set_writing(ring, 1);
	writer->ring = ring;
	writer->size = ring_size;
	writer->head = ring->head;
	writer->used = 0;
	if (writer->head + spare - *(volatile __u64 *)&ring->tail > writer->size) {
		ring->lost++;
		ring_set_writing(ring, 0);
		return false;
	}
	writer->at = (char *)(ring + 1) + (writer->head & (writer->size - 1));
	return true;
}

/* Returns the position of a record of that size and advances. */
static __always_inline void *ring_writer_take(struct writer *writer, __u32 size)
{
	void *record = writer->at;

	writer->at += size;
	writer->used += size;
	return record;
}

/* Publishes the written records. */
static __always_inline void ring_writer_end(struct writer *writer)
{
	struct vp_ring *ring = writer->ring;
	__u64 size = writer->size, head = writer->head;
	__u64 end = (head & (size - 1)) + writer->used, next = head + writer->used;

	if (end >= size) {
		ring->lap_end = end;
		next = (head | (size - 1)) + 1;
	}
	store_after(&ring->head, next);
	__u64 half = ring->tail + size / 2;
	if (head < half && next >= half)
		ring->must_ring = 1;
	/* In an NMI the doorbell may be locked: the next record rings. */
	if (ring->must_ring &&
	    !bpf_ringbuf_output(&doorbell, &next, sizeof(next), BPF_RB_FORCE_WAKEUP))
		ring->must_ring = 0;
	ring_set_writing(ring, 0);
}

#endif
