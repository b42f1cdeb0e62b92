/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The per-pCPU ring buffers that the sampling programs share with user space: see
 * bpf/sampler_abi.h. */
#ifndef VP_COLLECT_PROGRAMS_RINGS_H
#define VP_COLLECT_PROGRAMS_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "bpf/sampler_abi.h"

/* Complete records, 8-byte aligned, in order; valid during the call; the callback may modify
 * them. */
typedef void (*vp_records_fn)(void *context, uint32_t pcpu, char *records, size_t size);

struct ring_buffer;

struct vp_rings {
	char *memory;
	uint32_t count; /* highest pCPU + 1 */
	size_t size;    /* size of each, a power of two; 0: only headers */
	size_t stride;  /* distance between rings, bytes */
};

/* Plans rings of about `wanted` bytes (0: headers only) for pCPUs 0 to `count` - 1; sets everything
 * except `memory`. `stacks`: for samples with stacks. */
struct vp_error *vp_rings_plan(struct vp_rings *rings, uint32_t count, size_t wanted,
			       bool stacks) VP_MUST_CHECK;
/* Maps the kernel's array, created with that plan. */
struct vp_error *vp_rings_map(struct vp_rings *rings, int fd) VP_MUST_CHECK;
/* May be called if it is not mapped. */
void vp_rings_unmap(struct vp_rings *rings);

/* Passes on the contents of the pCPU's ring, in one or two parts. */
void vp_rings_drain(struct vp_rings *rings, uint32_t pcpu, vp_records_fn take, void *context);
/* The same for these pCPUs, after emptying the doorbell, which rings again for records that come
 * meanwhile. Returns 0, or a negative errno. */
int vp_rings_drain_all(struct vp_rings *rings, struct ring_buffer *doorbell, const int *pcpus,
		       size_t count, vp_records_fn take, void *context);
/* Number of records lost in a full ring since the start. */
uint64_t vp_rings_lost(const struct vp_rings *rings, uint32_t pcpu);

#endif
