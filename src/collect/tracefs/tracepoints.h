/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records any kernel tracepoints, through the per-pCPU buffers of an ftrace instance or, without
 * ftrace, through perf's buffers. Events are converted to records of classes generated from the
 * tracepoints' formats.
 */
#ifndef VP_COLLECT_TRACEFS_TRACEPOINTS_H
#define VP_COLLECT_TRACEFS_TRACEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/event_class.h"

struct vp_tracepoint_spec {
	const char *name;   /* SYSTEM:EVENT, both with wildcards as in fnmatch(3); or a probe
			       definition (collect/tracefs/probe_definition.h) */
	const char *filter; /* syntax of Documentation/trace/events.rst; or NULL */
	bool optional;      /* not an error if it is missing */
};

/* Records of a pCPU, sorted by time from `first` to `last`: `n` records, `n_events` of which are
 * events; the others are vp_tasks with the names of their threads. */
struct vp_tracepoints_batch {
	char *bytes;
	size_t size;
	uint64_t n, n_events, first, last;
};

struct vp_tracepoints_options {
	const struct vp_tracepoint_spec *specs;
	size_t n_specs;
	size_t ring_bytes; /* per pCPU: a power of two, at least a page */
	bool by_perf;      /* do not use ftrace */
	void (*take)(void *context, uint32_t pcpu, const struct vp_tracepoints_batch *batch);
	void *context;
};

struct vp_tracepoints;

/* Whether the name is a tracepoint, a pattern, or a probe definition. */
bool vp_tracepoints_is_name(const char *name);

/* Finds and opens the events. Errors: unknown name, invalid filter. */
struct vp_error *vp_tracepoints_open(const struct vp_tracepoints_options *options,
				     struct vp_tracepoints **ret) VP_MUST_CHECK;
void vp_tracepoints_free(struct vp_tracepoints *tracepoints);
/* A sentence about options that this kernel does not support, or NULL. */
const char *vp_tracepoints_missing(const struct vp_tracepoints *tracepoints);
/* The reason for using perf's buffers instead of ftrace's, which have less overhead; NULL: ftrace
 * is used. */
const char *vp_tracepoints_by_perf(const struct vp_tracepoints *tracepoints);
/* Number of removed probes of killed recorders. */
unsigned vp_tracepoints_leftover(const struct vp_tracepoints *tracepoints);
/* Appends their classes to the existing ones, which defines the ids of their records. Call before
 * the start. */
struct vp_error *vp_tracepoints_define(struct vp_tracepoints *tracepoints,
				       vp_event_classes *classes) VP_MUST_CHECK;
struct vp_error *vp_tracepoints_begin(struct vp_tracepoints *tracepoints) VP_MUST_CHECK;
/* A descriptor that is readable when a good part of a buffer is full. */
int vp_tracepoints_fd(const struct vp_tracepoints *tracepoints);
/* Passes on available records. Errors: the kernel's pages or loss counts cannot be read. */
struct vp_error *vp_tracepoints_drain(struct vp_tracepoints *tracepoints) VP_MUST_CHECK;
/* Also records a pCPU that came online: with ftrace from its first moment, with perf from now on.
 * Call after the start. */
struct vp_error *vp_tracepoints_add_pcpu(struct vp_tracepoints *tracepoints,
					 uint32_t pcpu) VP_MUST_CHECK;
/* Stops recording; the rest can still be drained. */
struct vp_error *vp_tracepoints_end(struct vp_tracepoints *tracepoints) VP_MUST_CHECK;

/*
 * Lost events of the pCPU, from the start until the last drain. With perf's buffers, `events` is
 * the kernel's count in the buffer; after the end, all events that perf counted and that were not
 * recorded. With ftrace's buffers, the names of threads that did not fit count as events, too.
 */
struct vp_tracepoints_loss {
	uint64_t events;
	uint64_t all;  /* total, including recorded ones; 0 before the end */
	uint64_t full; /* lost events for which the kernel reported a full buffer */
};
struct vp_tracepoints_loss vp_tracepoints_lost(const struct vp_tracepoints *tracepoints,
					       uint32_t pcpu);

#endif
