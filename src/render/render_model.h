/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders model trees and their measures: text in WEKA's format, JSON, and DOT for Graphviz. */
#ifndef VP_RENDER_RENDER_MODEL_H
#define VP_RENDER_RENDER_MODEL_H

#include "base/json.h"
#include "stats/evaluate.h"

/* Append to `out`; `key` as in base/json.h. */
void vp_render_tree_text(const struct vp_m5 *tree, struct vp_buffer *out);
void vp_render_tree_json(const struct vp_m5 *tree, const char *key, struct vp_json *json);
void vp_render_tree_dot(const struct vp_m5 *tree, struct vp_buffer *out);
/* "=== TITLE ===", then the measures with WEKA's labels. */
void vp_render_score_text(const char *title, const struct vp_score *score, struct vp_buffer *out);
void vp_render_score_json(const struct vp_score *score, const char *key, struct vp_json *json);

#endif
