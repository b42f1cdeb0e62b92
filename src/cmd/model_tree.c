/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf model tree: M5' model trees. */
#include "cmd/model.h"

#include "render/model.h"

struct outcome {
	struct vp_score training, crossed;
	size_t folds;
};

static void put_text(const struct vp_m5 *tree, const struct outcome *outcome, struct vp_buffer *out)
{
	vp_render_tree_text(tree, out);
	vp_buffer_string(out, "\n");
	vp_render_score_text("Error on training data", &outcome->training, out);
	if (!outcome->folds)
		return;
	vp_buffer_string(out, "\n");
	vp_render_score_text("Cross-validation", &outcome->crossed, out);
}

static void put_json(const struct vp_m5 *tree, const struct outcome *outcome, struct vp_buffer *out)
{
	vp_buffer_string(out, "{\"tree\": ");
	vp_render_tree_json(tree, out);
	vp_buffer_string(out, ",\n\"training\": ");
	vp_render_score_json(&outcome->training, out);
	if (outcome->folds) {
		vp_buffer_printf(out, ",\n\"folds\": %zu, \"cross_validation\": ", outcome->folds);
		vp_render_score_json(&outcome->crossed, out);
	}
	vp_buffer_string(out, "}\n");
}

static struct vp_error *put_tree(const struct vp_model_options *options, const struct vp_m5 *tree,
				 const struct vp_data *data, struct vp_buffer *out)
{
	struct outcome outcome = {0};
	struct vp_learner learner = vp_m5_learner(&tree->options);

	if (options->chosen == VP_MODEL_DOT) {
		vp_render_tree_dot(tree, out);
		return NULL;
	}
	VP_TRY(vp_model_folds(options, data, &outcome.folds));
	vp_score_training(&learner, tree, data, &outcome.training);
	if (outcome.folds)
		vp_cross_validate(&learner, data, outcome.folds, &outcome.crossed, NULL);
	if (options->chosen == VP_MODEL_JSON)
		put_json(tree, &outcome, out);
	else
		put_text(tree, &outcome, out);
	return NULL;
}

static struct vp_m5 *build(const struct vp_model_options *options, const struct vp_data *data)
{
	struct vp_m5_options how = vp_model_tree_options(options);
	size_t n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);

	return vp_m5_build(data, rows, n, &how);
}

struct vp_error *vp_model_tree(const struct vp_model_options *options, struct vp_buffer *out)
{
	struct vp_data data;

	VP_TRY(vp_model_read(options, options->operands.at[1], &data));
	struct vp_m5 *tree = build(options, &data);
	struct vp_error *error = put_tree(options, tree, &data, out);
	vp_m5_free(tree);
	vp_data_deinit(&data);
	return error;
}
