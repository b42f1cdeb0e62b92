/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rings of the trace programs, one per pCPU (bpf/trace_abi.h): made, and read. */
#ifndef VP_COLLECT_PROGRAMS_TRACE_RINGS_H
#define VP_COLLECT_PROGRAMS_TRACE_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "collect/programs/rings.h"

struct ring_buffer;
struct trace_bpf;
struct vp_trace_cpu;
struct vp_trace_source;

struct vp_trace_rings {
	struct trace_bpf *programs;
	uint32_t n_cpus, n_pages;  /* pages of each ring */
	int pattern;               /* a map as the rings are, until the programs are loaded */
	struct vp_trace_cpu *cpus; /* by pCPU; NULL: not mapped */
	struct ring_buffer *asides;
	VP_VEC(struct vp_trace_source *) sources;
};

/* For the programs before they are loaded; a ring has at least one page. Errors: -errno. */
int vp_trace_rings_plan(struct vp_trace_rings *rings, struct trace_bpf *programs, size_t bytes);
/* For the programs that are loaded, still without any ring. */
struct vp_error *vp_trace_rings_map(struct vp_trace_rings *rings) VP_MUST_CHECK;
struct vp_error *vp_trace_rings_add(struct vp_trace_rings *rings, uint32_t pcpu) VP_MUST_CHECK;
bool vp_trace_rings_has(const struct vp_trace_rings *rings, uint32_t pcpu);
/* Passes on available records, pCPU by pCPU, in order of time. The last of those written aside may
 * wait for the next call, since earlier ones may still arrive; not with `all`, at the end. The
 * callback may modify the records. */
void vp_trace_rings_drain(struct vp_trace_rings *rings, bool all, vp_records_fn take,
			  void *context);
/* Records of that pCPU that found no room. */
uint64_t vp_trace_rings_lost(const struct vp_trace_rings *rings, uint32_t pcpu);
void vp_trace_rings_deinit(struct vp_trace_rings *rings);

#endif
