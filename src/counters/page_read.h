/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a counter through perf's page. */
#ifndef VP_COUNTERS_PAGE_READ_H
#define VP_COUNTERS_PAGE_READ_H

#include <linux/perf_event.h>

#include "counters/user_read.h"

/*
 * perf_event_open(2), "MMAP layout": the kernel changes `lock` whenever it changes the rest, which
 * it does when the thread gets or loses a CPU. False: the event is on no counter now.
 */
static inline bool vp_counters_page_read(const volatile struct perf_event_mmap_page *page,
					 uint64_t *ret)
{
	uint32_t sequence, index;
	uint64_t count;

	do {
		sequence = page->lock;
		VP_COUNTERS_BARRIER();
		index = page->index;
		count = (uint64_t)page->offset;
		if (index) {
			unsigned unused = 64U - page->pmc_width;
			uint64_t value = vp_counters_user_read(index - 1);
			count += (uint64_t)((int64_t)(value << unused) >> unused);
		}
		VP_COUNTERS_BARRIER();
	} while (page->lock != sequence);
	*ret = count;
	return index != 0;
}

#endif
