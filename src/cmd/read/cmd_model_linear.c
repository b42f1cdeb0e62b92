/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf model linear: multiple regression, with contributions of groups of predictors. */
#include "analyze/model/model_groups.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "cmd/read/cmd_model.h"
#include "stats/data.h"
#include "stats/evaluate.h"
#include "stats/linear.h"

#include "render/render_model.h"
#include "render/render_model_linear.h"

/* Folds of the cross-validation; fewer if there are fewer rows. */
enum { FOLDS = 10 };

/* The groups in the file of --groups, or else proposed groups. */
static struct vp_error *model_groups_choose(const struct vp_model_options *options,
					    struct vp_model_groups *groups, struct vp_linear *model,
					    const struct vp_data *data)
{
	if (options->groups)
		return vp_model_groups_read(groups, options->groups, model, data);
	vp_model_groups_propose(groups, model, data);
	return NULL;
}

static struct vp_linear *model_fit_linear(const struct vp_model_options *options,
					  const struct vp_data *data)
{
	struct vp_linear_options how = {.nonneg = options->nonneg};
	size_t n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);

	return vp_linear_build(data, rows, n, &how);
}

static struct vp_error *put_linear(const struct vp_model_options *options,
				   const struct vp_linear *model,
				   const struct vp_model_groups *groups, const struct vp_data *data,
				   struct vp_buffer *out)
{
	struct vp_learner learner = vp_linear_learner(&model->options);
	struct vp_score training = {0}, crossed = {0};
	size_t folds;

	VP_TRY(vp_model_folds(options, data, &folds));
	if (options->chosen == VP_MODEL_CSV) {
		vp_render_linear_csv(model, groups, out);
		return NULL;
	}
	if (!folds)
		folds = data->rows < FOLDS ? data->rows : FOLDS;
	vp_score_training(&learner, model, data, &training);
	if (folds > 1)
		vp_cross_validate(&learner, data, folds, &crossed, NULL);
	if (options->chosen == VP_MODEL_JSON) {
		struct vp_json json = vp_json_to(out);
		vp_json_answer(&json);
		vp_render_linear_json(model, groups, data, "linear", &json);
		vp_json_line(&json);
		vp_render_score_json(&training, "training", &json);
		vp_json_line(&json);
		vp_json_count(&json, "folds", folds);
		vp_render_score_json(&crossed, "cross_validation", &json);
		vp_json_object_end(&json);
		vp_buffer_string(out, "\n");
		return NULL;
	}
	vp_render_linear_text(model, groups, data, out);
	vp_buffer_string(out, "\n");
	vp_render_score_text("Error on training data", &training, out);
	vp_buffer_string(out, "\n");
	if (folds > 1)
		vp_render_score_text("Cross-validation", &crossed, out);
	return NULL;
}

struct vp_error *vp_model_linear(const struct vp_model_options *options, struct vp_buffer *out)
{
	struct vp_model_groups groups;
	struct vp_data data;

	if (options->chosen == VP_MODEL_DOT)
		return vp_error_usage("option --format: dot is only for trees");
	VP_TRY(vp_model_read(options, options->operands.at[1], &data));
	struct vp_linear *model = model_fit_linear(options, &data);
	struct vp_error *error = model_groups_choose(options, &groups, model, &data);
	if (!error) {
		error = put_linear(options, model, &groups, &data, out);
		vp_model_groups_deinit(&groups);
	}
	vp_linear_free(model);
	vp_data_deinit(&data);
	return error;
}
