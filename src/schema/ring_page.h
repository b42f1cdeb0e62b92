/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A page of ftrace's ring buffer (trace_pipe_raw; kernel/trace/ring_buffer.c), from an untrusted
 * source. */
#ifndef VP_SCHEMA_RING_PAGE_H
#define VP_SCHEMA_RING_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/macros.h"

struct vp_ring_page {
	struct vp_cursor data;
	uint64_t time;
	bool missed;    /* events before this page were overwritten */
	bool malformed; /* the bytes after the last entry are not a valid entry */
};

/* Parses the page's header in `bytes`, written by a kernel with longs of `long_size` bytes (4 or
 * 8). False: the size in it exceeds the page. */
bool vp_ring_page_open_of(struct vp_slice bytes, unsigned long_size,
			  struct vp_ring_page *ret) VP_MUST_CHECK;
/* The same for a 64-bit kernel. */
static inline bool vp_ring_page_open(struct vp_slice bytes, struct vp_ring_page *ret)
{
	return vp_ring_page_open_of(bytes, 8, ret);
}
/* Fields of an entry's first word: type or length, then the time since the previous entry. */
enum { VP_RING_TYPE_BITS = 5, VP_RING_LONG = 0, VP_RING_PADDING = 29 };

/* Slow path of vp_ring_page_next(): padding, time extensions and long entries. */
bool vp_ring_page_next_other(struct vp_ring_page *page, uint64_t *time, struct vp_slice *entry);
/* The next entry and its time on the ring buffer's clock; false: end of the page. Inline: entries
 * are only a few words, and readers do little else. */
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
