/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The per-pCPU rings that the sampling programs share with user space: see bpf/sampler_abi.h. */
#ifndef VP_COLLECT_PROGRAMS_RINGS_H
#define VP_COLLECT_PROGRAMS_RINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "bpf/sampler_abi.h"

/* Complete records, 8-byte aligned, in order; valid during the call; the callback may modify
 * them. */
typedef void (*vp_records_fn)(void *context, uint32_t pcpu, char *records, size_t size);

struct vp_rings {
	char *memory;
	uint32_t count; /* highest pCPU + 1 */
	size_t size;    /* bytes of each: a power of two; 0: only the headers are used */
	size_t stride;  /* from one ring to the next */
};

/* Rings of about `wanted` bytes (0: of none) for pCPUs 0 to `count` - 1; sets all but `memory`. */
struct vp_error *vp_rings_plan(struct vp_rings *rings, uint32_t count, size_t wanted) VP_MUST_CHECK;
/* Maps the kernel's array, made to the plan. */
struct vp_error *vp_rings_map(struct vp_rings *rings, int fd) VP_MUST_CHECK;
/* Safe if it is not mapped. */
void vp_rings_unmap(struct vp_rings *rings);

/* Hands over what is in the pCPU's ring, in one piece or two. */
void vp_rings_drain(struct vp_rings *rings, uint32_t pcpu, vp_records_fn take, void *context);
/* Records that found no room, since the start. */
uint64_t vp_rings_lost(const struct vp_rings *rings, uint32_t pcpu);

#endif
