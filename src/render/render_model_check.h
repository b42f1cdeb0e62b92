/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_RENDER_RENDER_MODEL_CHECK_H
#define VP_RENDER_RENDER_MODEL_CHECK_H

#include "analyze/model/model_check.h"
#include "base/buffer.h"

/* Unexplained and influential rows are named, at most a screenful of them. */
void vp_render_check_text(const struct vp_model_check *check, struct vp_buffer *out);
void vp_render_check_json(const struct vp_model_check *check, struct vp_buffer *out);
/* Every row. */
void vp_render_check_csv(const struct vp_model_check *check, struct vp_buffer *out);

#endif
