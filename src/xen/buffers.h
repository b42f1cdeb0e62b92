/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's trace buffers, one per pCPU: enables, maps and drains them. */
#ifndef VP_XEN_BUFFERS_H
#define VP_XEN_BUFFERS_H

#include <stdbool.h>

#include "base/macros.h"
#include "xen/library.h"
#include "xen/trace.h"

struct vp_xen_buffers;

/* Enables the buffers; nothing is written yet. Errors: no permission; another reader is active. */
struct vp_error *vp_xen_buffers_open(struct vp_xen *xen, struct vp_xen_buffers **ret) VP_MUST_CHECK;
/* Enables the events in `mask` (VP_XEN_TRACE_*). From now on the buffers must be drained
 * frequently. */
struct vp_error *vp_xen_buffers_start(struct vp_xen_buffers *buffers, uint32_t mask) VP_MUST_CHECK;
/* Disables events; the rest can still be drained. */
void vp_xen_buffers_stop(struct vp_xen_buffers *buffers);
void vp_xen_buffers_close(struct vp_xen_buffers *buffers);
/* Emits records since the last call, sorted by time, except the latest, because other pCPUs may
 * still write earlier ones. Returns the time up to which all records are known. */
uint64_t vp_xen_buffers_drain(struct vp_xen_buffers *buffers,
			      void (*take)(void *context, const struct vp_xen_traced *traced),
			      void *context);
/* Whether records of the last or present vp_xen_buffers_drain() are missing, or may be: a buffer
 * was full, or Xen reported a loss. */
bool vp_xen_buffers_is_losing(const struct vp_xen_buffers *buffers);
/* Lost since the start: records that did not fit into Xen's buffers, unreadable ones, and one for
 * each interference of another reader. */
uint64_t vp_xen_buffers_lost(const struct vp_xen_buffers *buffers);

#endif
