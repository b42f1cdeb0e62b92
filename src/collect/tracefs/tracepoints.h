/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any tracepoints of the kernel: each pCPU's events through a buffer of an ftrace instance or, if
 * the kernel has none, through perf's buffers; converted to records of event classes that are made
 * of the tracepoints' formats. */
#ifndef VP_COLLECT_TRACEFS_TRACEPOINTS_H
#define VP_COLLECT_TRACEFS_TRACEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/event_class.h"

struct vp_tracepoint_spec {
	const char *name;   /* SYSTEM:EVENT; either may have wildcards, as fnmatch(3) has them; or
			     * a probe's definition (collect/tracefs/probe_definition.h) */
	const char *filter; /* as Documentation/trace/events.rst has it, or NULL */
	bool optional;      /* a missing one is no error */
};

/* Records of events, and vp_tasks that name their threads, of a pCPU: in order of time, `n` of them
 * of which `n_events` are events, from `first` to `last`. */
struct vp_tracepoints_batch {
	char *bytes;
	size_t size;
	uint64_t n, n_events, first, last;
};

struct vp_tracepoints_options {
	const struct vp_tracepoint_spec *specs;
	size_t n_specs;
	size_t ring_bytes; /* per pCPU: a power of two, at least a page */
	bool by_perf;      /* ftrace is not asked */
	void (*take)(void *context, uint32_t pcpu, const struct vp_tracepoints_batch *batch);
	void *context;
};

struct vp_tracepoints;

/* Whether an event of that name is a tracepoint, a pattern of them, or a probe, if there is any
 * such. */
bool vp_tracepoints_is_name(const char *name);

/* Finds and opens the events. Errors: unknown name, invalid filter. */
struct vp_error *vp_tracepoints_open(const struct vp_tracepoints_options *options,
				     struct vp_tracepoints **ret) VP_MUST_CHECK;
void vp_tracepoints_free(struct vp_tracepoints *tracepoints);
/* A sentence on what of the wishes this kernel does not have, or NULL. */
const char *vp_tracepoints_missing(const struct vp_tracepoints *tracepoints);
/* Why its events come by perf's buffers rather than by ftrace's, which cost less, or NULL. */
const char *vp_tracepoints_by_perf(const struct vp_tracepoints *tracepoints);
/* How many probes of recorders that were killed it has removed. */
unsigned vp_tracepoints_leftover(const struct vp_tracepoints *tracepoints);
/* Adds their classes after the existing ones: their records have these ids. Call before the
 * start. */
struct vp_error *vp_tracepoints_define(struct vp_tracepoints *tracepoints,
				       vp_event_classes *classes) VP_MUST_CHECK;
struct vp_error *vp_tracepoints_begin(struct vp_tracepoints *tracepoints) VP_MUST_CHECK;
/* A descriptor that can be read once a good part of a buffer is full. */
int vp_tracepoints_fd(const struct vp_tracepoints *tracepoints);
/* Hands over what there is. Errors: the kernel's pages or its counts of losses cannot be read. */
struct vp_error *vp_tracepoints_drain(struct vp_tracepoints *tracepoints) VP_MUST_CHECK;
/* The pCPU came online: records its events, too. With ftrace from its first moment on, with perf
 * from now on. Call after the start. */
struct vp_error *vp_tracepoints_add_pcpu(struct vp_tracepoints *tracepoints,
					 uint32_t pcpu) VP_MUST_CHECK;
/* Counts no more; what is left can still be drained. */
struct vp_error *vp_tracepoints_end(struct vp_tracepoints *tracepoints) VP_MUST_CHECK;

/* Events of the pCPU, from the start until the last drain. With perf's buffers, `events` is the
 * kernel's count in the buffer; after the end, what perf counted and what is not here, for whatever
 * reason. */
struct vp_tracepoints_loss {
	uint64_t events;
	uint64_t all;  /* with those that were recorded; 0 before the end */
	uint64_t full; /* of those lost: the kernel said that the buffer was full */
};
struct vp_tracepoints_loss vp_tracepoints_lost(const struct vp_tracepoints *tracepoints,
					       uint32_t pcpu);

#endif
