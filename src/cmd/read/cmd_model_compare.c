/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf model compare: overhead of virtualization by groups of events. */
#include "analyze/model/model_compare.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "cmd/read/cmd_model.h"
#include "render/render_model.h"
#include "render/render_model_compare.h"
#include "stats/data.h"
#include "stats/evaluate.h"
#include "stats/linear.h"
#include "stats/m5.h"
#include "table/reader.h"

/* Appends the tree of the merged data, which shows how the sides differ; a regression cannot. JSON
 * is written to the current object. */
static struct vp_error *cmd_model_compare_put_tree(const struct vp_model_options *options,
						   const struct vp_data *merged,
						   struct vp_json *json, struct vp_buffer *out)
{
	struct vp_m5_options how = vp_model_tree_options(options);
	struct vp_learner learner = vp_m5_learner(&how);
	struct vp_score score = {0};
	size_t n, folds;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(merged, &n);

	VP_TRY(vp_model_folds(options, merged, &folds));
	struct vp_m5 *tree = vp_m5_build(merged, rows, n, &how);
	if (folds)
		vp_cross_validate(&learner, merged, folds, &score, NULL);
	if (options->chosen == VP_MODEL_JSON) {
		vp_json_line(json);
		vp_render_tree_json(tree, "tree", json);
		if (folds) {
			vp_json_line(json);
			vp_render_score_json(&score, "cross_validation", json);
		}
	} else {
		vp_buffer_string(out, "\nBoth together, with '" VP_MERGED_COLUMN "' 0 or 1:\n\n");
		vp_render_tree_text(tree, out);
		if (folds) {
			vp_buffer_string(out, "\n");
			vp_render_score_text("Cross-validation", &score, out);
		}
	}
	vp_m5_free(tree);
	return NULL;
}

static struct vp_error *put_comparison(const struct vp_model_options *options,
				       const struct vp_comparison *comparison,
				       struct vp_data *merged, size_t native_rows,
				       struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);
	struct vp_buffer file = {0};

	vp_comparison_mark(merged, native_rows);
	if (options->chosen == VP_MODEL_CSV) {
		vp_render_comparison_csv(comparison, out);
	} else if (options->chosen == VP_MODEL_JSON) {
		vp_json_answer(&json);
		vp_render_comparison_json(comparison, "comparison", &json);
		VP_TRY(cmd_model_compare_put_tree(options, merged, &json, out));
		vp_json_object_end(&json);
		vp_buffer_string(out, "\n");
	} else {
		vp_render_comparison_text(comparison, out);
		VP_TRY(cmd_model_compare_put_tree(options, merged, &json, out));
	}
	if (options->svg) {
		struct vp_buffer clean = {0};
		vp_render_comparison_svg(comparison, &file);
		vp_text_clean_lines(file.bytes, file.size, &clean);
		vp_buffer_deinit(&file);
		VP_TRY(vp_model_publish(options->svg, &clean));
	}
	if (options->merged) {
		vp_dataset_write_csv(merged, &file);
		VP_TRY(vp_model_publish(options->merged, &file));
	}
	return NULL;
}

static struct vp_error *cmd_model_compare_compare(const struct vp_model_options *options,
						  const struct vp_data *sides,
						  struct vp_buffer *out)
{
	struct vp_linear_options how = {.nonneg = options->nonneg};
	struct vp_comparison comparison;
	struct vp_data merged;

	VP_TRY(vp_comparison_merge(sides, options->operands.at + 1, &merged));
	struct vp_error *error = vp_comparison_init(&comparison, &merged, sides[VP_NATIVE].rows,
						    &how, options->groups, options->path);
	if (!error) {
		error = put_comparison(options, &comparison, &merged, sides[VP_NATIVE].rows, out);
		vp_comparison_deinit(&comparison);
	}
	vp_data_deinit(&merged);
	return error;
}

struct vp_error *vp_model_compare(const struct vp_model_options *options, struct vp_buffer *out)
{
	struct vp_data sides[VP_SIDES] = {0};

	if (options->chosen == VP_MODEL_DOT)
		return vp_error_usage("option --format: dot is only for trees");
	VP_TRY(vp_model_read(options, options->operands.at[1], &sides[VP_NATIVE]));
	struct vp_error *error =
	    vp_model_read(options, options->operands.at[2], &sides[VP_VIRTUAL]);
	if (!error)
		error = cmd_model_compare_compare(options, sides, out);
	for (size_t side = 0; side < VP_SIDES; side++)
		vp_data_deinit(&sides[side]);
	return error;
}
