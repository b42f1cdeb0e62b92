/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/agent/clock_line.h"

#include <string.h>

#include "base/search.h"

enum {
	MAX_POINTS = 4096,
	STEADY_PPM = 1, /* assumed unobserved change of a clock's rate */
};
/* With pairs close to each other, the reading errors would dominate the rate. */
#define APART_NS 20000000ULL

void vp_clock_line_add(struct vp_clock_line *line, const struct vp_clock_point *point)
{
	size_t count = line->points.count;
	const struct vp_clock_point *last = count ? &line->points.at[count - 1] : NULL;

	if (last && (point->from <= last->from || point->to <= last->to))
		return;
	line->slope = 0; /* the last point may be removed */
	if (count == MAX_POINTS) {
		memmove(line->points.at, line->points.at + MAX_POINTS / 2,
			MAX_POINTS / 2 * sizeof(*line->points.at));
		line->points.count = count = MAX_POINTS / 2;
		line->found = 0;
	}
	/* Replaces the last point if it is too close to the previous one. */
	if (count > 1 && point->ns - line->points.at[count - 2].ns < APART_NS)
		line->points.at[count - 1] = *point;
	else
		vp_vec_push(&line->points, *point);
}

size_t vp_clock_line_find(struct vp_clock_line *line, uint64_t from)
{
	size_t found = line->found;

	if (found && found < line->points.count && line->points.at[found].from >= from &&
	    line->points.at[found - 1].from < from)
		return found;
	line->found = VP_FIRST(i, line->points.count, line->points.at[i].from >= from);
	return line->found;
}

/* `away`: distance to the nearer point, if not between the two. */
static void note_error(struct vp_clock_line *line, const struct vp_clock_point *before,
		       const struct vp_clock_point *after, uint64_t away)
{
	unsigned __int128 reads = (unsigned __int128)before->error_ns + after->error_ns;
	uint64_t length = after->ns - before->ns, span = after->from - before->from;
	/* resolution of the slower clock, and rounding */
	uint64_t unseen = 2 + length / (after->to - before->to) + length / span;
	unsigned __int128 error =
	    reads + reads * away / span + length * STEADY_PPM / 1000000 + unseen;

	if (error > line->error_ns)
		line->error_ns = error < UINT32_MAX ? (uint64_t)error : UINT32_MAX;
}

/* Caches the interval from `before` to `after`, unless the slope does not fit, or the interval is
 * too long for its precision. */
static void keep_near(struct vp_clock_line *line, const struct vp_clock_point *before,
		      const struct vp_clock_point *after)
{
	uint64_t run = after->from - before->from, rise = after->to - before->to;

	line->slope = 0;
	if (run >> 32 || rise >> 32)
		return;
	line->begin = before->from;
	line->length = run;
	line->at_begin = before->to;
	line->slope = (rise << 32) / run;
}

uint64_t vp_clock_line_convert_far(struct vp_clock_line *line, uint64_t from)
{
	const struct vp_clock_point *points = line->points.at;
	size_t count = line->points.count, next = vp_clock_line_find(line, from);

	if (count < 2)
		return points[0].to;
	next = !next ? 1 : next == count ? count - 1 : next;
	const struct vp_clock_point *before = &points[next - 1], *after = &points[next];
	uint64_t away = from < before->from  ? before->from - from
			: from > after->from ? from - after->from
					     : 0;
	note_error(line, before, after, away);
	keep_near(line, before, after);
	unsigned __int128 rise = after->to - before->to;
	uint64_t run = after->from - before->from;
	return from < before->from ? before->to - (uint64_t)(rise * (before->from - from) / run)
				   : before->to + (uint64_t)(rise * (from - before->from) / run);
}

void vp_clock_line_deinit(struct vp_clock_line *line)
{
	vp_vec_deinit(&line->points);
}
