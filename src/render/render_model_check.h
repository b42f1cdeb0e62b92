/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_RENDER_RENDER_MODEL_CHECK_H
#define VP_RENDER_RENDER_MODEL_CHECK_H

#include "analyze/model/model_check.h"
#include "base/buffer.h"

/* Lists unexplained and influential rows, up to a screenful. */
void vp_render_check_text(const struct vp_model_check *check, struct vp_buffer *out);
void vp_render_check_json(const struct vp_model_check *check, struct vp_buffer *out);
/* All rows. */
void vp_render_check_csv(const struct vp_model_check *check, struct vp_buffer *out);

#endif
