/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A time window of a recording. */
#ifndef VP_ANALYZE_COMMON_WINDOW_H
#define VP_ANALYZE_COMMON_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct vp_window {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns; `to` 0: the whole recording */
};

static inline bool vp_window_is_all(const struct vp_window *window)
{
	return !window->to;
}

/* Overlap of the window with the time from `begin` to `end`, ns. */
static inline uint64_t vp_window_overlap(const struct vp_window *window, uint64_t begin,
					 uint64_t end)
{
	if (vp_window_is_all(window))
		return end > begin ? end - begin : 0;
	begin = begin > window->from ? begin : window->from;
	end = end < window->to ? end : window->to;
	return end > begin ? end - begin : 0;
}

/* The part of `amount` in the window if it is spread evenly from `begin` to `end`. The parts of
 * adjacent windows sum to the whole. */
static inline uint64_t vp_window_part(const struct vp_window *window, uint64_t begin, uint64_t end,
				      uint64_t amount)
{
	uint64_t length = end > begin ? end - begin : 0;

	if (vp_window_is_all(window))
		return amount;
	/* an instant: all or nothing */
	if (!length)
		return end > window->from && end <= window->to ? amount : 0;
	uint64_t before = window->from > begin ? window->from - begin : 0;
	uint64_t after = window->to > begin ? window->to - begin : 0;
	before = before < length ? before : length;
	after = after < length ? after : length;
	if (after <= before)
		return 0;
	return (uint64_t)((unsigned __int128)amount * after / length) -
	       (uint64_t)((unsigned __int128)amount * before / length);
}

#endif
