/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf model check: validity of models of a data set. */
#include "analyze/model/model_check.h"
#include "base/buffer.h"
#include "base/error.h"
#include "stats/data.h"
#include "stats/linear.h"
#include "stats/m5.h"

#include "cmd/read/cmd_model.h"
#include "render/render_model_check.h"

enum { FOLDS = 10 };

static struct vp_error *check_data(const struct vp_model_options *options, struct vp_data *data,
				   struct vp_buffer *out)
{
	struct vp_linear_options linear = {.nonneg = options->nonneg};
	struct vp_m5_options tree = vp_model_tree_options(options);
	struct vp_model_check check;
	size_t folds;

	VP_TRY(vp_model_folds(options, data, &folds));
	if (!folds)
		folds = data->rows < FOLDS ? data->rows : FOLDS;
	if (folds < 2)
		return vp_error_new("%s: expected at least 2 rows, found %zu",
				    options->operands.at[1], data->rows);
	struct vp_error *error =
	    vp_model_check_init(&check, data, options->workload, folds, &linear, &tree);
	if (!error && options->chosen == VP_MODEL_CSV)
		vp_render_check_csv(&check, out);
	else if (!error && options->chosen == VP_MODEL_JSON)
		vp_render_check_json(&check, out);
	else if (!error)
		vp_render_check_text(&check, out);
	vp_model_check_deinit(&check);
	return error;
}

struct vp_error *vp_model_check(const struct vp_model_options *options, struct vp_buffer *out)
{
	struct vp_data data;

	if (options->chosen == VP_MODEL_DOT)
		return vp_error_usage("option --format: dot is only for trees");
	VP_TRY(vp_model_read(options, options->operands.at[1], &data));
	struct vp_error *error = check_data(options, &data, out);
	vp_data_deinit(&data);
	return error;
}
