/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a counter through perf's mmap page. */
#ifndef VP_COUNTERS_PAGE_READ_H
#define VP_COUNTERS_PAGE_READ_H

#include <linux/perf_event.h>

#include "counters/user_read.h"

/* Sign bit of the counter's values, for extension to 64 bits. */
static inline uint64_t vp_counters_page_sign(const volatile struct perf_event_mmap_page *page)
{
	unsigned width = page->pmc_width;

	return width ? 1ULL << (width - 1) : 0;
}

/*
 * The count since `origin`, an earlier count plus `sign`; or `sign` for the whole count. `sign`:
 * vp_counters_page_sign(), constant while the event counts. perf_event_open(2), "MMAP layout": the
 * kernel changes `lock` whenever it changes the rest, when the thread gets or loses a CPU. False:
 * the event is not on a counter now.
 */
static inline bool vp_counters_page_read(const struct perf_event_mmap_page *page, uint64_t sign,
					 uint64_t origin, uint64_t *ret)
{
	const volatile struct perf_event_mmap_page *fields =
	    page; /* volatile: each field is read once */
	uint32_t sequence, index;

	do {
		sequence = fields->lock;
		VP_COUNTERS_BARRIER();
		index = fields->index;
		if (!index)
			return false;
		*ret =
		    (uint64_t)fields->offset + (vp_counters_user_read(index - 1) ^ sign) - origin;
		VP_COUNTERS_BARRIER();
	} while (page->lock != sequence);
	return true;
}

#endif
