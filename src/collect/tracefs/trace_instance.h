/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An ftrace instance: one buffer per pCPU, with its own enabled tracepoints, on CLOCK_MONOTONIC, in
 * no-overwrite mode: the kernel counts lost events. */
#ifndef VP_COLLECT_TRACEFS_TRACE_INSTANCE_H
#define VP_COLLECT_TRACEFS_TRACE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_trace_instance;

/*
 * Creates a disabled instance in directory `tracing`, with `bytes` per pCPU, and removes instances
 * of killed recorders. A child process removes it when this process ends for any reason. Errors:
 * the kernel cannot create one.
 */
struct vp_error *vp_trace_instance_new(const char *tracing, size_t bytes,
				       struct vp_trace_instance **ret) VP_MUST_CHECK;
/* Close the page descriptors first. */
void vp_trace_instance_free(struct vp_trace_instance *instance);
/* Adds an event; `filter` may be NULL. Errors: no such event, or an invalid filter. */
struct vp_error *vp_trace_instance_add(struct vp_trace_instance *instance, const char *name,
				       const char *filter) VP_MUST_CHECK;
struct vp_error *vp_trace_instance_switch(struct vp_trace_instance *instance,
					  bool on) VP_MUST_CHECK;
/* A descriptor that returns one page of the pCPU's ring buffer per read(2) (ring_page.h), or
 * nothing without a full page; poll() waits for a fourth of the buffer. */
struct vp_error *vp_trace_instance_open_pages(struct vp_trace_instance *instance, uint32_t pcpu,
					      int *ret) VP_MUST_CHECK;
/* Number of lost events of the pCPU. Errors: the kernel does not report it. */
struct vp_error *vp_trace_instance_lost(const struct vp_trace_instance *instance, uint32_t pcpu,
					uint64_t *ret) VP_MUST_CHECK;

#endif
