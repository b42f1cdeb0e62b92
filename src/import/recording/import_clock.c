/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/import_clock.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/search.h"

/* Clock rates are assumed constant for this time. */
#define WINDOW_NS 1000000000ULL

/* Upper or lower bound of a guest's offset. */
struct bound {
	uint64_t time;
	int64_t shift;
	bool is_upper;
};
typedef VP_VEC(struct bound) bounds_vec;

static uint64_t import_clock_key_of(const struct vp_import_mark *mark, enum vp_import_side side)
{
	return vp_hash64(mark->vm) ^ ((uint64_t)mark->count << 2 | (uint64_t)side);
}

static int import_clock_by_time(const void *a, const void *b)
{
	const struct bound *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

/* A bound for each message recorded on both sides. */
static void find_bounds(const struct vp_import_timing *host, const struct vp_import_timing *guest,
			bounds_vec *ret)
{
	struct vp_map index_of = {0};
	bool inserted;

	for (size_t i = 0; i < host->marks.count; i++)
		vp_map_insert(&index_of,
			      import_clock_key_of(&host->marks.at[i], host->marks.at[i].side),
			      (uint32_t)i, &inserted);
	vp_vec_each (&guest->marks, mark) {
		bool sends = mark->side == VP_IMPORT_GUEST_SENDS;
		enum vp_import_side other = sends ? VP_IMPORT_HOST_RECV : VP_IMPORT_HOST_SENDS;
		const uint32_t *found = vp_map_find(&index_of, import_clock_key_of(mark, other));
		if (!found || (!sends && mark->side != VP_IMPORT_GUEST_RECV))
			continue;
		const struct vp_import_mark *its = &host->marks.at[*found];
		if (its->vm != mark->vm || its->count != mark->count || its->side != other)
			continue;
		struct bound bound = {mark->time, (int64_t)(its->time - mark->time), sends};
		vp_vec_push(ret, bound);
	}
	vp_map_deinit(&index_of);
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(*ret->at), import_clock_by_time);
}

struct range {
	int64_t low, high;
	bool has_low, has_high;
};

static struct range range_of(const struct bound *from, const struct bound *end)
{
	struct range range = {.has_low = false};

	for (; from < end; from++) {
		if (from->is_upper && (!range.has_high || from->shift < range.high))
			range.high = from->shift;
		if (!from->is_upper && (!range.has_low || from->shift > range.low))
			range.low = from->shift;
		range.has_high |= from->is_upper;
		range.has_low |= !from->is_upper;
	}
	return range;
}

static uint64_t import_clock_distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static int64_t middle(int64_t a, int64_t b)
{
	return (int64_t)(((__int128)a + b) / 2);
}

/* A node per window with both bounds. The clocks' drift from node to node is the error in
 * between. */
static void make_nodes(const bounds_vec *bounds, struct vp_import_clock *ret,
		       struct vp_import_clock_fit *fit)
{
	uint64_t drift = 0, width = 0;

	for (size_t from = 0, end; from < bounds->count; from = end) {
		end = from;
		while (end < bounds->count &&
		       bounds->at[end].time - bounds->at[from].time < WINDOW_NS)
			end++;
		struct range range = range_of(bounds->at + from, bounds->at + end);
		if (!range.has_low || !range.has_high)
			continue;
		uint64_t begin = bounds->at[from].time, last = bounds->at[end - 1].time;
		struct vp_import_clock_node node = {begin + (last - begin) / 2,
						    middle(range.low, range.high)};
		uint64_t wide = import_clock_distance(range.low, range.high) / 2 + 1;
		width = wide > width ? wide : width;
		if (ret->nodes.count) {
			int64_t before = ret->nodes.at[ret->nodes.count - 1].shift;
			uint64_t apart = import_clock_distance(before, node.shift);
			drift = apart > drift ? apart : drift;
		}
		vp_vec_push(&ret->nodes, node);
	}
	fit->error_ns = width + drift;
}

struct vp_import_clock_fit vp_import_clock_make(const struct vp_import_timing *host,
						const struct vp_import_timing *guest,
						struct vp_import_clock *ret)
{
	struct vp_import_clock_fit fit = {.way = VP_IMPORT_CLOCK_SAME};
	bounds_vec bounds = {0};

	/* Equal offsets (ns): both files used the same clock. */
	if (!guest->has_clock || (host->has_clock && host->offset == guest->offset))
		return fit;
	find_bounds(host, guest, &bounds);
	fit.messages = bounds.count;
	fit.way = VP_IMPORT_CLOCK_MESSAGES;
	make_nodes(&bounds, ret, &fit);
	if (!ret->nodes.count) {
		struct range range = range_of(bounds.at, bounds.at + bounds.count);
		struct vp_import_clock_node node = {
		    0, (int64_t)((uint64_t)guest->offset - (uint64_t)host->offset)};
		if (range.has_low && range.has_high) {
			node.shift = middle(range.low, range.high);
			fit.error_ns = import_clock_distance(range.low, range.high) / 2 + 1;
		} else if (bounds.count) {
			fit.way = VP_IMPORT_CLOCK_ONE_WAY;
			node.shift = range.has_high ? range.high : range.low;
		} else {
			fit.way = VP_IMPORT_CLOCK_WALL_CLOCKS;
		}
		vp_vec_push(&ret->nodes, node);
	}
	vp_vec_deinit(&bounds);
	return fit;
}

static uint64_t import_clock_shifted(uint64_t time, __int128 shift)
{
	__int128 moved = (__int128)time + shift;

	return moved < 0 ? 0 : moved > UINT64_MAX ? UINT64_MAX : (uint64_t)moved;
}

uint64_t vp_import_clock_at(const struct vp_import_clock *clock, uint64_t time)
{
	if (!clock->nodes.count)
		return time;
	size_t later = VP_FIRST(i, clock->nodes.count, clock->nodes.at[i].time > time);
	if (!later)
		return import_clock_shifted(time, clock->nodes.at[0].shift);
	const struct vp_import_clock_node *from = &clock->nodes.at[later - 1], *to = from + 1;
	if (later == clock->nodes.count)
		return import_clock_shifted(time, from->shift);
	__int128 growth = (__int128)to->shift - from->shift;
	/* Times of a damaged trace may not fit: no overflow. */
	__int128 grown = (__int128)((unsigned __int128)growth * (time - from->time));
	return import_clock_shifted(time, from->shift + grown / (__int128)(to->time - from->time));
}

void vp_import_clock_deinit(struct vp_import_clock *clock)
{
	vp_vec_deinit(&clock->nodes);
}
