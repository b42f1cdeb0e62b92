/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/ring_page.h"

enum { TYPE_BITS = VP_RING_TYPE_BITS, DELTA_BITS = 27 };
enum { LONG_ENTRY = VP_RING_LONG, PADDING = VP_RING_PADDING, TIME_EXTEND = 30, TIME_STAMP = 31 };
#define TYPE_MASK ((1U << TYPE_BITS) - 1)
/* Absolute times lack the highest bits, which are taken from the previous time. */
#define STAMP_BITS 59
/* Bits of the word with the used size of the page. */
#define COMMIT_MASK 0xfffffU
#define MISSED_EVENTS (1U << 31)

bool vp_ring_page_open_of(struct vp_slice bytes, unsigned long_size, struct vp_ring_page *ret)
{
	struct vp_cursor page = vp_cursor_of(bytes.bytes, bytes.size);

	*ret = (struct vp_ring_page){.time = vp_cursor_u64(&page)};
	uint32_t commit = long_size == 4 ? vp_cursor_u32(&page) : (uint32_t)vp_cursor_u64(&page);
	ret->missed = commit & MISSED_EVENTS;
	struct vp_slice data = vp_cursor_bytes(&page, commit & COMMIT_MASK);
	ret->data = vp_cursor_of(data.bytes, data.size);
	return vp_cursor_ok(&page);
}

static uint64_t absolute(uint64_t before, uint64_t stamp)
{
	const uint64_t high = ~0ULL << STAMP_BITS;

	return (before & high) | (stamp & ~high);
}

/* The length of an entry that does not fit into its type is in an extra word, which is included in
 * the length. */
static struct vp_slice ring_page_take_long(struct vp_cursor *data)
{
	uint32_t size = vp_cursor_u32(data);

	if (size < sizeof(size)) {
		data->failed = true;
		return (struct vp_slice){"", 0};
	}
	struct vp_slice entry = vp_cursor_bytes(data, size - sizeof(size));
	size_t over = size % sizeof(size);
	if (over && vp_cursor_left(data))
		vp_cursor_bytes(data, sizeof(size) - over);
	return entry;
}

/* Stops at malformed data. */
static bool end_malformed(struct vp_ring_page *page)
{
	page->malformed = true;
	page->data.next = page->data.end;
	return false;
}

bool vp_ring_page_next_other(struct vp_ring_page *page, uint64_t *time, struct vp_slice *entry)
{
	struct vp_cursor *data = &page->data;

	while (vp_cursor_left(data)) {
		uint32_t word = vp_cursor_u32(data), type = word & TYPE_MASK;
		uint64_t delta = word >> TYPE_BITS;
		if (type == PADDING && !delta) { /* the rest of the page */
			data->next = data->end;
			return false;
		}
		if (type >= TIME_EXTEND)
			delta |= (uint64_t)vp_cursor_u32(data) << DELTA_BITS;
		page->time = type == TIME_STAMP ? absolute(page->time, delta) : page->time + delta;
		if (type >= TIME_EXTEND && vp_cursor_ok(data))
			continue;
		struct vp_slice bytes = type == LONG_ENTRY || type == PADDING
					    ? ring_page_take_long(data)
					    : vp_cursor_bytes(data, (size_t)type * 4);
		if (!vp_cursor_ok(data))
			return end_malformed(page);
		if (type == PADDING) /* a discarded entry */
			continue;
		*time = page->time;
		*entry = bytes;
		return true;
	}
	return false;
}
