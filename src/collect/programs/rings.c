/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/rings.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

static struct vp_ring *ring_of(const struct vp_rings *rings, uint32_t pcpu)
{
	return (void *)(rings->memory + pcpu * rings->stride);
}

/* Maximum size of an array element in the kernel: 4 MiB (v6.1 and before, KMALLOC_MAX_SIZE). */
enum { MIN = 32 << 10, MIN_WITH_STACKS = 256 << 10, MAX = 2 << 20 };
_Static_assert(MIN_WITH_STACKS >= 4 * VP_RING_SPARE, "a ring without space for a sample is full");

struct vp_error *vp_rings_plan(struct vp_rings *rings, uint32_t count, size_t wanted, bool stacks)
{
	size_t size = !wanted ? 0 : stacks ? MIN_WITH_STACKS : MIN;

	while (size && 2 * size <= wanted && size < MAX)
		size *= 2;
	*rings = (struct vp_rings){.count = count, .size = size};
	rings->stride = sizeof(struct vp_ring) + size + VP_RING_SPARE;
	if (rings->stride > UINT32_MAX / count) /* kernel limit for one array */
		return vp_error_new("per-CPU buffers of %zu bytes for %u pCPUs are too large", size,
				    count);
	return NULL;
}

static size_t mapped_size(const struct vp_rings *rings)
{
	size_t page = (size_t)getpagesize(), bytes = rings->count * rings->stride;

	return (bytes + page - 1) / page * page;
}

struct vp_error *vp_rings_map(struct vp_rings *rings, int fd)
{
	size_t size = mapped_size(rings);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (memory == MAP_FAILED)
		return vp_error_errno(errno, "cannot map the per-CPU ring buffers (%zu bytes)",
				      size);
	rings->memory = memory;
	return NULL;
}

void vp_rings_unmap(struct vp_rings *rings)
{
	if (rings->memory)
		munmap(rings->memory, mapped_size(rings));
	rings->memory = NULL;
}

void vp_rings_drain(struct vp_rings *rings, uint32_t pcpu, vp_records_fn take, void *context)
{
	struct vp_ring *ring = ring_of(rings, pcpu);
	char *records = (char *)(ring + 1);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;
	uint64_t mask = rings->size - 1, lap = head & ~mask;

	if (head == tail)
		return;
	if (tail < lap) {
		take(context, pcpu, records + (tail & mask), ring->lap_end - (tail & mask));
		tail = lap;
	}
	if (tail < head)
		take(context, pcpu, records + (tail & mask), head - tail);
	__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
}

int vp_rings_drain_all(struct vp_rings *rings, struct ring_buffer *doorbell, const int *pcpus,
		       size_t count, vp_records_fn take, void *context)
{
	int rung = ring_buffer__consume(doorbell);

	for (size_t i = 0; i < count; i++)
		vp_rings_drain(rings, (uint32_t)pcpus[i], take, context);
	return rung < 0 ? rung : 0;
}

uint64_t vp_rings_lost(const struct vp_rings *rings, uint32_t pcpu)
{
	return pcpu < rings->count ? __atomic_load_n(&ring_of(rings, pcpu)->lost, __ATOMIC_RELAXED)
				   : 0;
}
