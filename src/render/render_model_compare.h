/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_RENDER_RENDER_MODEL_COMPARE_H
#define VP_RENDER_RENDER_MODEL_COMPARE_H

#include "analyze/model/model_compare.h"
#include "base/json.h"

/* Append to `out`; `key` as in base/json.h. */
void vp_render_comparison_text(const struct vp_comparison *comparison, struct vp_buffer *out);
void vp_render_comparison_csv(const struct vp_comparison *comparison, struct vp_buffer *out);
void vp_render_comparison_json(const struct vp_comparison *comparison, const char *key,
			       struct vp_json *json);
/* Two stacked bars with one part per group. */
void vp_render_comparison_svg(const struct vp_comparison *comparison, struct vp_buffer *out);

#endif
