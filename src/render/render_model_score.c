/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "render/decimal.h"
#include "render/render_model.h"
#include "stats/evaluate.h"

/* Column in which WEKA prints numbers; it is further to the right for the last label. */
enum { LABEL = 35, LONG_LABEL = 43 };

static void put_score_line(const char *label, double value, const char *unit, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%-*s", strlen(label) > 30 ? LONG_LABEL : LABEL, label);
	vp_render_decimal_field(value, 12, 4, out);
	vp_buffer_printf(out, "%s\n", unit);
}

void vp_render_score_text(const char *title, const struct vp_score *score, struct vp_buffer *out)
{
	vp_buffer_printf(out, "=== %s ===\n\n", title);
	if (score->n > 0) {
		put_score_line("Correlation coefficient", vp_score_correlation(score), "", out);
		put_score_line("Mean absolute error", vp_score_mae(score), "", out);
		put_score_line("Root mean squared error", vp_score_rmse(score), "", out);
		put_score_line("Relative absolute error", vp_score_rae(score), " %", out);
		put_score_line("Root relative squared error", vp_score_rrse(score), " %", out);
	}
	put_score_line("Total Number of Instances", score->n, "", out);
	if (score->ignored > 0)
		put_score_line("Ignored Class Unknown Instances", score->ignored, "", out);
}

void vp_render_score_json(const struct vp_score *score, const char *key, struct vp_json *json)
{
	vp_json_object(json, key);
	vp_json_number(json, "correlation", vp_score_correlation(score));
	vp_json_number(json, "mean_absolute_error", vp_score_mae(score));
	vp_json_number(json, "root_mean_squared_error", vp_score_rmse(score));
	vp_json_number(json, "relative_absolute_error_percent", vp_score_rae(score));
	vp_json_number(json, "root_relative_squared_error_percent", vp_score_rrse(score));
	vp_json_number(json, "rows", score->n);
	vp_json_number(json, "ignored", score->ignored);
	vp_json_object_end(json);
}
