/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders intervals as text and JSON. */
#ifndef VP_RENDER_RENDER_INTERVALS_H
#define VP_RENDER_RENDER_INTERVALS_H

#include "analyze/model/intervals.h"
#include "base/buffer.h"

/* A sentence about the plan of the counts; to be freed. */
char *vp_render_intervals_plan(const struct vp_interval_recording *rec);
/* Totals of each event over all intervals; `base` and `per` as in struct vp_interval_choice. */
/* The terminal has `width` characters per line; 0: no limit. */
void vp_render_intervals_text(const struct vp_interval_recording *rec, const char *base, double per,
			      size_t width, struct vp_buffer *out);
/* Each interval, with the raw count of each event and its live share. */
void vp_render_intervals_json(const struct vp_interval_recording *rec, struct vp_buffer *out);

#endif
