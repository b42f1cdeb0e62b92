/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring buffers of the trace programs, one per pCPU (bpf/trace_abi.h): created and read. */
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
	bool plain_stores;         /* programs publish records by them: see plain_stores.h */
	int pattern;               /* an inner map as a template, until the programs are loaded */
	struct vp_trace_cpu *cpus; /* by pCPU; NULL: not mapped */
	struct ring_buffer *asides;
	VP_VEC(struct vp_trace_source *) sources;
};

/* Before the programs are loaded; a ring has at least one page. Errors: -errno. */
int vp_trace_rings_plan(struct vp_trace_rings *rings, struct trace_bpf *programs, size_t bytes);
/* After the programs are loaded: creates and maps the rings. */
struct vp_error *vp_trace_rings_map(struct vp_trace_rings *rings) VP_MUST_CHECK;
struct vp_error *vp_trace_rings_add(struct vp_trace_rings *rings, uint32_t pcpu) VP_MUST_CHECK;
bool vp_trace_rings_has(const struct vp_trace_rings *rings, uint32_t pcpu);
/*
 * Passes on available records, pCPU by pCPU, sorted by time. The last records in the side buffer
 * may be kept for the next call, because earlier ones may still arrive; not with `all`, at the end.
 * The callback may modify the records.
 */
void vp_trace_rings_drain(struct vp_trace_rings *rings, bool all, vp_records_fn take,
			  void *context);
/* Number of records of that pCPU lost since the start. */
uint64_t vp_trace_rings_lost(const struct vp_trace_rings *rings, uint32_t pcpu);
void vp_trace_rings_deinit(struct vp_trace_rings *rings);

#endif
