/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A page of ftrace's ring buffer (trace_pipe_raw; kernel/trace/ring_buffer.c): its source is not
 * trusted.
 */
#ifndef VP_SCHEMA_RING_PAGE_H
#define VP_SCHEMA_RING_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/macros.h"

struct vp_ring_page {
	struct vp_cursor data;
	uint64_t time;
	bool missed;    /* events before the page were overwritten */
	bool malformed; /* the bytes after the last entry are not an entry */
};

/* `bytes` start with the page's header, of a kernel whose long has `long_size` bytes (4 or 8).
 * False: its size is larger than the page. */
bool vp_ring_page_open_of(struct vp_slice bytes, unsigned long_size,
			  struct vp_ring_page *ret) VP_MUST_CHECK;
/* For a 64-bit kernel, such as this one. */
static inline bool vp_ring_page_open(struct vp_slice bytes, struct vp_ring_page *ret)
{
	return vp_ring_page_open_of(bytes, 8, ret);
}
/* Parts of an entry's first word: type or length, then the time since the previous entry. */
enum { VP_RING_TYPE_BITS = 5, VP_RING_LONG = 0, VP_RING_PADDING = 29 };

/* One that is no usual one. */
bool vp_ring_page_next_other(struct vp_ring_page *page, uint64_t *time, struct vp_slice *entry);
/* The next entry, and the time that the ring's clock showed; false: there are no more. Inline: most
 * are of a few words, and whoever reads pages does little else. */
static inline bool vp_ring_page_next(struct vp_ring_page *page, uint64_t *time,
				     struct vp_slice *entry)
{
	const char *at = page->data.next;
	size_t left = (size_t)(page->data.end - at);
	uint32_t word;

	if (left >= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		uint32_t type = word & ((1U << VP_RING_TYPE_BITS) - 1);
		size_t size = type * sizeof(word);
		if (type != VP_RING_LONG && type < VP_RING_PADDING && size <= left - sizeof(word)) {
			page->data.next = at + sizeof(word) + size;
			*time = page->time += word >> VP_RING_TYPE_BITS;
			*entry = (struct vp_slice){at + sizeof(word), size};
			return true;
		}
	}
	return vp_ring_page_next_other(page, time, entry);
}

#endif
