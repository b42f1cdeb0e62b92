/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders a comparison of two recordings as text, JSON and CSV. */
#ifndef VP_RENDER_RENDER_DIFF_H
#define VP_RENDER_RENDER_DIFF_H

#include "analyze/account/account_diff.h"
#include "base/buffer.h"

/* The terminal has `width` characters per line; 0: no limit. */
void vp_render_diff_text(const struct vp_diff *diff, const char *before, const char *after,
			 size_t width, struct vp_buffer *out);
void vp_render_diff_json(const struct vp_diff *diff, const char *before, const char *after,
			 struct vp_buffer *out);
void vp_render_diff_csv(const struct vp_diff *diff, struct vp_buffer *out);

#endif
