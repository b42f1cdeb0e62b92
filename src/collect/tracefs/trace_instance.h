/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An ftrace instance of its own: buffers, one per pCPU, with the enabled tracepoints, on
 * CLOCK_MONOTONIC. The kernel counts events that do not fit, and does not overwrite. */
#ifndef VP_COLLECT_TRACEFS_TRACE_INSTANCE_H
#define VP_COLLECT_TRACEFS_TRACE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_trace_instance;

/* Creates it below directory `tracing`, with `bytes` for each pCPU's buffer, disabled; and removes
 * those of killed recorders. A child process removes it when this one has ended, for whatever
 * reason. Errors: the kernel creates none. */
struct vp_error *vp_trace_instance_new(const char *tracing, size_t bytes,
				       struct vp_trace_instance **ret) VP_MUST_CHECK;
/* Its descriptors of pages are to be closed before. */
void vp_trace_instance_free(struct vp_trace_instance *instance);
/* Adds the event to those that are recorded; `filter` may be NULL. Errors: no such event, or an
 * invalid filter. */
struct vp_error *vp_trace_instance_add(struct vp_trace_instance *instance, const char *name,
				       const char *filter) VP_MUST_CHECK;
struct vp_error *vp_trace_instance_switch(struct vp_trace_instance *instance,
					  bool on) VP_MUST_CHECK;
/* A descriptor that gives a page of the pCPU's ring for each read(2) (ring_page.h), nothing without
 * one, and that can be polled for a fourth of the ring. */
struct vp_error *vp_trace_instance_open_pages(struct vp_trace_instance *instance, uint32_t pcpu,
					      int *ret) VP_MUST_CHECK;
/* Events of the pCPU that found no room. Errors: the kernel does not show it. */
struct vp_error *vp_trace_instance_lost(const struct vp_trace_instance *instance, uint32_t pcpu,
					uint64_t *ret) VP_MUST_CHECK;

#endif
