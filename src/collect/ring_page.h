/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A page of ftrace's ring buffer (trace_pipe_raw; kernel/trace/ring_buffer.c), made by a kernel of
 * 64 bits: whoever it is from is not believed.
 */
#ifndef VP_COLLECT_RING_PAGE_H
#define VP_COLLECT_RING_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/macros.h"

struct vp_ring_page {
	struct vp_cursor data;
	uint64_t time;
	bool missed;    /* events before the page were overwritten */
	bool malformed; /* what follows the last entry is none */
};

/* Begins with the page's header. False: it has no room for what it says that it holds. */
bool vp_ring_page_open(struct vp_slice bytes, struct vp_ring_page *ret) VP_MUST_CHECK;
/* The next entry, and the time that the ring's clock showed; false: there are no more. */
bool vp_ring_page_next(struct vp_ring_page *page, uint64_t *time, struct vp_slice *entry);

#endif
