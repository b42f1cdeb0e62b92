/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts one clock to another, by pairs of readings during a recording. Between two pairs, and
 * before and after all, it is a straight line. */
#ifndef VP_COLLECT_AGENT_CLOCK_LINE_H
#define VP_COLLECT_AGENT_CLOCK_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct vp_clock_point {
	uint64_t from, to; /* the clocks */
	uint64_t ns;       /* when that was, by whichever of them counts nanoseconds */
	uint64_t error_ns; /* they were read within this many */
};

struct vp_clock_line {
	VP_VEC(struct vp_clock_point) points; /* the latest of them, in order of both clocks */
	size_t found;                         /* where the last one lay: the next one is near */
	uint64_t error_ns;                    /* the largest of all that were converted */
	/* Between the two pairs that the last one lay between: what is at `begin`, and what comes
	 * with each step from there, as a fraction of 2^32; 0: not known. */
	uint64_t begin, length, at_begin, slope;
};

/* A later pair; one that is not later by both clocks is left out. */
void vp_clock_line_add(struct vp_clock_line *line, const struct vp_clock_point *point);
/* How many of the pairs are before that: 0 or all of them, if it lies outside. */
size_t vp_clock_line_find(struct vp_clock_line *line, uint64_t from);
uint64_t vp_clock_line_look(struct vp_clock_line *line, uint64_t from);
/* The other clock's time; there must be a pair. */
static inline uint64_t vp_clock_line_at(struct vp_clock_line *line, uint64_t from)
{
	uint64_t passed = from - line->begin;

	if (!line->slope || passed > line->length)
		return vp_clock_line_look(line, from);
	return line->at_begin + (uint64_t)((unsigned __int128)passed * line->slope >> 32);
}
/* Whether it is between the two pairs that the last one was between. */
static inline bool vp_clock_line_is_near(const struct vp_clock_line *line, uint64_t from)
{
	return line->slope && from - line->begin <= line->length;
}
void vp_clock_line_deinit(struct vp_clock_line *line);

#endif
