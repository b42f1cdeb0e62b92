/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf model tree: builds, saves and loads M5' model trees, and predicts with them. */
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/read/cmd_model.h"
#include "stats/data.h"
#include "stats/evaluate.h"
#include "stats/m5.h"

#include <math.h>
#include <time.h>

#include "base/json.h"
#include "render/render_model.h"
#include "table/model_file.h"
#include "table/reader.h"

struct outcome {
	double seconds; /* time taken to build the tree */
	struct vp_score training, crossed;
	size_t folds;
};

static void put_tree_text(const struct vp_m5 *tree, const struct outcome *outcome,
			  struct vp_buffer *out)
{
	vp_render_tree_text(tree, out);
	if (outcome->training.n > 0) {
		vp_buffer_printf(out, "\nTime taken to build model: %.3f seconds\n\n",
				 outcome->seconds);
		vp_render_score_text("Error on training data", &outcome->training, out);
	}
	if (!outcome->folds)
		return;
	vp_buffer_string(out, "\n");
	vp_render_score_text("Cross-validation", &outcome->crossed, out);
}

static void cmd_model_tree_put_json(const struct vp_m5 *tree, const struct outcome *outcome,
				    struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_render_tree_json(tree, "tree", &json);
	if (outcome->training.n > 0) {
		vp_json_line(&json);
		vp_json_fixed(&json, "build_seconds", outcome->seconds, 6);
		vp_json_line(&json);
		vp_render_score_json(&outcome->training, "training", &json);
	}
	if (outcome->folds) {
		vp_json_line(&json);
		vp_json_count(&json, "folds", outcome->folds);
		vp_render_score_json(&outcome->crossed, "cross_validation", &json);
	}
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

/* Without rows, the tree was loaded: there are no training errors to print. */
static struct vp_error *cmd_model_tree_put_tree(const struct vp_model_options *options,
						const struct vp_m5 *tree, double seconds,
						const struct vp_data *data, struct vp_buffer *out)
{
	struct outcome outcome = {.seconds = seconds};
	struct vp_learner learner = vp_m5_learner(&tree->options);

	if (options->chosen == VP_MODEL_CSV)
		return vp_error_usage("option --format: csv needs --predict");
	if (options->chosen == VP_MODEL_DOT) {
		vp_render_tree_dot(tree, out);
		return NULL;
	}
	VP_TRY(vp_model_folds(options, data, &outcome.folds));
	if (data->rows)
		vp_score_training(&learner, tree, data, &outcome.training);
	if (outcome.folds)
		vp_cross_validate(&learner, data, outcome.folds, &outcome.crossed, NULL);
	if (options->chosen == VP_MODEL_JSON)
		cmd_model_tree_put_json(tree, &outcome, out);
	else
		put_tree_text(tree, &outcome, out);
	return NULL;
}

static void cmd_model_tree_put_known(double value, struct vp_buffer *out)
{
	if (!isnan(value))
		vp_json_put_number(value, out);
}

static void put_predictions(const struct vp_m5 *tree, const struct vp_data *data,
			    struct vp_buffer *out)
{
	const double *y = data->columns.at[data->target].values;

	vp_buffer_string(out, "row,actual,predicted,rule\n");
	for (size_t row = 0; row < data->rows; row++) {
		vp_buffer_printf(out, "%zu,", row + 1);
		cmd_model_tree_put_known(y[row], out);
		vp_buffer_string(out, ",");
		cmd_model_tree_put_known(vp_m5_predict(tree, data, row), out);
		vp_buffer_printf(out, ",%u\n", vp_m5_leaf(tree, data, row)->number);
	}
}

static void put_predictions_json(const struct vp_m5 *tree, const struct vp_data *data,
				 const struct vp_score *score, struct vp_buffer *out)
{
	const double *y = data->columns.at[data->target].values;
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_array(&json, "predictions");
	for (size_t row = 0; row < data->rows; row++) {
		if (row)
			vp_json_line(&json);
		vp_json_object(&json, NULL);
		vp_json_count(&json, "row", row + 1);
		vp_json_number(&json, "actual", y[row]);
		vp_json_number(&json, "predicted", vp_m5_predict(tree, data, row));
		vp_json_count(&json, "rule", vp_m5_leaf(tree, data, row)->number);
		vp_json_object_end(&json);
	}
	vp_json_array_end(&json);
	vp_json_line(&json);
	vp_render_score_json(score, "score", &json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static struct vp_error *cmd_model_tree_predict(const struct vp_model_options *options,
					       const struct vp_m5 *tree,
					       const struct vp_data *schema, struct vp_buffer *out)
{
	struct vp_learner learner = vp_m5_learner(&tree->options);
	struct vp_score score = {0};
	struct vp_data data, aligned;

	VP_TRY(vp_dataset_read(options->predict, &data));
	struct vp_error *error = vp_model_align(schema, &data, options->predict, &aligned);
	vp_data_deinit(&data);
	if (error)
		return error;
	vp_score_training(&learner, tree, &aligned, &score);
	if (options->chosen == VP_MODEL_JSON)
		put_predictions_json(tree, &aligned, &score, out);
	else
		put_predictions(tree, &aligned, out);
	if (options->chosen == VP_MODEL_TEXT && score.n > 0) {
		vp_buffer_string(out, "\n");
		vp_render_score_text("Error on test data", &score, out);
	}
	vp_data_deinit(&aligned);
	return NULL;
}

static struct vp_m5 *build(const struct vp_model_options *options, const struct vp_data *data,
			   double *seconds)
{
	struct vp_m5_options how = vp_model_tree_options(options);
	struct timespec before, after;
	size_t n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);

	clock_gettime(CLOCK_MONOTONIC, &before);
	struct vp_m5 *tree = vp_m5_build(data, rows, n, &how);
	clock_gettime(CLOCK_MONOTONIC, &after);
	*seconds = (double)(after.tv_sec - before.tv_sec) +
		   1e-9 * (double)(after.tv_nsec - before.tv_nsec);
	return tree;
}

static struct vp_error *use_tree(const struct vp_model_options *options, const struct vp_m5 *tree,
				 double seconds, const struct vp_data *data, struct vp_buffer *out)
{
	if (options->predict)
		VP_TRY(cmd_model_tree_predict(options, tree, data, out));
	else
		VP_TRY(cmd_model_tree_put_tree(options, tree, seconds, data, out));
	if (!options->save)
		return NULL;
	struct vp_buffer text = {0};
	vp_model_save(tree, data, &text);
	return vp_model_publish(options->save, &text);
}

struct vp_error *vp_model_tree(const struct vp_model_options *options, struct vp_buffer *out)
{
	size_t files = options->operands.count - 1;
	struct vp_data data;
	struct vp_m5 *tree;
	double seconds = 0;

	if (options->load && (files || options->folds))
		return vp_error_usage("option --load: a loaded tree takes no training data");
	if (!options->load && !files)
		return vp_error_usage("expected a data file, or --load");
	if (options->load) {
		VP_TRY(vp_model_load(options->load, &tree, &data));
	} else {
		VP_TRY(vp_model_read(options, options->operands.at[1], &data));
		tree = build(options, &data, &seconds);
	}
	struct vp_error *error = use_tree(options, tree, seconds, &data, out);
	vp_m5_free(tree);
	vp_data_deinit(&data);
	return error;
}
