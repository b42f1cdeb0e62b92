/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_RENDER_RENDER_MODEL_LINEAR_H
#define VP_RENDER_RENDER_MODEL_LINEAR_H

#include "analyze/model/model_groups.h"
#include "base/json.h"

/* Coefficients and contributions of a regression, its groups, and unused columns. */
void vp_render_linear_text(const struct vp_linear *model, const struct vp_model_groups *groups,
			   const struct vp_data *data, struct vp_buffer *out);
/* Only the terms. */
void vp_render_linear_csv(const struct vp_linear *model, const struct vp_model_groups *groups,
			  struct vp_buffer *out);
void vp_render_linear_json(const struct vp_linear *model, const struct vp_model_groups *groups,
			   const struct vp_data *data, const char *key, struct vp_json *json);

#endif
