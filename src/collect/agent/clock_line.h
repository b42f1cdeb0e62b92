/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts times of one clock to another by pairs of readings: linear interpolation between two
 * pairs, and extrapolation outside. */
#ifndef VP_COLLECT_AGENT_CLOCK_LINE_H
#define VP_COLLECT_AGENT_CLOCK_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct vp_clock_point {
	uint64_t from, to; /* readings of both clocks */
	uint64_t ns;       /* time of the reading, on the clock that counts nanoseconds */
	uint64_t error_ns; /* maximum distance of the two readings, ns */
};

struct vp_clock_line {
	VP_VEC(struct vp_clock_point) points; /* the latest pairs, ascending in both clocks */
	size_t found;      /* index of the last search, where the next one starts */
	uint64_t error_ns; /* maximum error of all conversions so far */
	/* Interval of the last conversion: value at `begin`, and slope as a fraction of 2^32;
	 * length 0: none. */
	uint64_t begin, length, at_begin, slope;
};

/* Adds a later pair; one that is not later on both clocks is ignored. */
void vp_clock_line_add(struct vp_clock_line *line, const struct vp_clock_point *point);
/* Number of pairs before that time; 0 or all if it is outside. */
size_t vp_clock_line_find(struct vp_clock_line *line, uint64_t from);
/* The same outside the last interval: finds another one. */
uint64_t vp_clock_line_convert_far(struct vp_clock_line *line, uint64_t from);
/* The time on the other clock; requires at least one pair. */
static inline uint64_t vp_clock_line_at(struct vp_clock_line *line, uint64_t from)
{
	uint64_t passed = from - line->begin;

	if (!line->slope || passed > line->length)
		return vp_clock_line_convert_far(line, from);
	return line->at_begin + (uint64_t)((unsigned __int128)passed * line->slope >> 32);
}
/* Whether the time is in the interval of the last conversion. */
static inline bool vp_clock_line_is_near(const struct vp_clock_line *line, uint64_t from)
{
	return line->slope && from - line->begin <= line->length;
}
void vp_clock_line_deinit(struct vp_clock_line *line);

#endif
