/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's trace buffers, one for each pCPU: switched on, mapped, and emptied. */
#ifndef VP_XEN_BUFFERS_H
#define VP_XEN_BUFFERS_H

#include "base/macros.h"
#include "xen/library.h"
#include "xen/trace.h"

struct vp_xen_buffers;

/* Switches the buffers on; nothing is written to them yet. Errors: no rights; somebody else reads
 * the buffers. */
struct vp_error *vp_xen_buffers_open(struct vp_xen *xen, struct vp_xen_buffers **ret) VP_MUST_CHECK;
/* Enables the events in `mask` (VP_XEN_TRACE_*). From here on the buffers have to be drained
 * often. */
struct vp_error *vp_xen_buffers_start(struct vp_xen_buffers *buffers, uint32_t mask) VP_MUST_CHECK;
/* No more events are written; those that were can still be read. */
void vp_xen_buffers_stop(struct vp_xen_buffers *buffers);
void vp_xen_buffers_close(struct vp_xen_buffers *buffers);
/*
 * Hands over what was written since the last call, in order of time, but the latest events, which
 * other pCPUs may not have written yet. Returns up to when everything is known.
 */
uint64_t vp_xen_buffers_drain(struct vp_xen_buffers *buffers,
			      void (*take)(void *context, const struct vp_xen_traced *traced),
			      void *context);
/* Since the start: records that Xen had no room for, those that could not be read, and one for each
 * time that somebody else took some. */
uint64_t vp_xen_buffers_lost(const struct vp_xen_buffers *buffers);

#endif
