/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_model_check.h"

#include "base/json.h"
#include "base/vec.h"
#include "render/render_model.h"
#include "stats/evaluate.h"

enum { SCREENFUL = 20 };

static const char *const models[] = {[VP_CHECK_LINEAR] = "linear", [VP_CHECK_TREE] = "tree"};

static void render_model_check_put_rows(const struct vp_model_check *check, struct vp_buffer *out)
{
	size_t shown = 0, all = 0;

	vp_buffer_printf(out, "\n%8s  %12s  %12s  %12s  %8s  %8s  %8s\n", "Row", "Actual", "Linear",
			 "Tree", "Err lin.", "Err tree", "Leverage");
	vp_vec_each (&check->rows, row) {
		if (!row->unexplained && !row->influential)
			continue;
		if (all++ >= SCREENFUL)
			continue;
		shown++;
		vp_buffer_printf(out, "%8zu  %12.6g  %12.6g  %12.6g  %8.2f  %8.2f  %8.4f%s%s\n",
				 row->row + 1, row->actual, row->predicted[VP_CHECK_LINEAR],
				 row->predicted[VP_CHECK_TREE], row->distance[VP_CHECK_LINEAR],
				 row->distance[VP_CHECK_TREE], row->leverage,
				 row->unexplained ? "  unexplained" : "",
				 row->influential ? "  influential" : "");
	}
	if (all > shown)
		vp_buffer_printf(out, "and %zu more (--format csv lists all)\n", all - shown);
}

static void put_workloads(const struct vp_model_check *check, struct vp_buffer *out)
{
	vp_buffer_printf(out, "\nEach workload predicted by models of the others:\n\n%-24s  %8s",
			 "Workload", "Rows");
	for (size_t m = 0; m < VP_CHECK_MODELS; m++)
		vp_buffer_printf(out, "  %8s r  %8s MAE", models[m], models[m]);
	vp_buffer_string(out, "\n");
	vp_vec_each (&check->workloads, workload) {
		vp_buffer_printf(out, "%-24s  %8.0f", workload->name, workload->score[0].n);
		for (size_t m = 0; m < VP_CHECK_MODELS; m++)
			vp_buffer_printf(out, "  %10.4f  %12.6g",
					 vp_score_correlation(&workload->score[m]),
					 vp_score_mae(&workload->score[m]));
		vp_buffer_string(out, "\n");
	}
}

void vp_render_check_text(const struct vp_model_check *check, struct vp_buffer *out)
{
	vp_buffer_printf(out,
			 "%zu rows, each predicted by models that have not seen it (%zu folds)\n\n",
			 check->rows.count, check->folds);
	vp_buffer_printf(out, "%-8s  %8s  %12s  %12s  Residuals: %s\n", "Model", "r", "MAE",
			 "Deviation", "min, quartiles, max");
	for (size_t m = 0; m < VP_CHECK_MODELS; m++) {
		vp_buffer_printf(out, "%-8s  %8.4f  %12.6g  %12.6g ", models[m],
				 vp_score_correlation(&check->score[m]),
				 vp_score_mae(&check->score[m]), check->deviation[m]);
		for (size_t q = 0; q < 5; q++)
			vp_buffer_printf(out, " %.5g", check->quantiles[m][q]);
		vp_buffer_string(out, "\n");
	}
	vp_buffer_printf(out, "\n%zu rows explained by no model, %zu with a leverage above %.4f\n",
			 check->unexplained, check->influential, check->high_leverage);
	if (check->unexplained || check->influential)
		render_model_check_put_rows(check, out);
	if (check->workloads.count)
		put_workloads(check, out);
}

static void render_model_check_put_json_model(const struct vp_model_check *check, size_t m,
					      struct vp_json *json)
{
	vp_json_line(json);
	vp_json_object(json, models[m]);
	vp_render_score_json(&check->score[m], "score", json);
	vp_json_number(json, "deviation", check->deviation[m]);
	vp_json_array(json, "quantiles");
	for (size_t q = 0; q < 5; q++)
		vp_json_number(json, NULL, check->quantiles[m][q]);
	vp_json_array_end(json);
	vp_json_object_end(json);
}

static void render_model_check_put_json_row(const struct vp_checked_row *row, struct vp_json *json)
{
	vp_json_object(json, NULL);
	vp_json_count(json, "row", row->row + 1);
	vp_json_number(json, "actual", row->actual);
	vp_json_number(json, "linear", row->predicted[VP_CHECK_LINEAR]);
	vp_json_number(json, "tree", row->predicted[VP_CHECK_TREE]);
	vp_json_number(json, "leverage", row->leverage);
	vp_json_bool(json, "unexplained", row->unexplained);
	vp_json_bool(json, "influential", row->influential);
	vp_json_object_end(json);
}

static void put_json_noted(const struct vp_model_check *check, struct vp_json *json)
{
	bool any = false;

	vp_json_line(json);
	vp_json_array(json, "noted");
	vp_vec_each (&check->rows, row) {
		if (!row->unexplained && !row->influential)
			continue;
		if (any)
			vp_json_line(json);
		render_model_check_put_json_row(row, json);
		any = true;
	}
	vp_json_array_end(json);
}

static void put_json_workloads(const struct vp_model_check *check, struct vp_json *json)
{
	vp_json_line(json);
	vp_json_array(json, "workloads");
	for (size_t i = 0; i < check->workloads.count; i++) {
		if (i)
			vp_json_line(json);
		vp_json_object(json, NULL);
		vp_json_text(json, "name", check->workloads.at[i].name);
		for (size_t m = 0; m < VP_CHECK_MODELS; m++)
			vp_render_score_json(&check->workloads.at[i].score[m], models[m], json);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}

void vp_render_check_json(const struct vp_model_check *check, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_count(&json, "rows", check->rows.count);
	vp_json_count(&json, "folds", check->folds);
	vp_json_count(&json, "unexplained", check->unexplained);
	vp_json_count(&json, "influential", check->influential);
	vp_json_number(&json, "high_leverage", check->high_leverage);
	for (size_t m = 0; m < VP_CHECK_MODELS; m++)
		render_model_check_put_json_model(check, m, &json);
	put_json_workloads(check, &json);
	put_json_noted(check, &json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

void vp_render_check_csv(const struct vp_model_check *check, struct vp_buffer *out)
{
	vp_buffer_string(out, "row,actual,linear,tree,leverage,unexplained,influential\n");
	vp_vec_each (&check->rows, row)
		vp_buffer_printf(out, "%zu,%.17g,%.17g,%.17g,%.17g,%d,%d\n", row->row + 1,
				 row->actual, row->predicted[VP_CHECK_LINEAR],
				 row->predicted[VP_CHECK_TREE], row->leverage, row->unexplained,
				 row->influential);
}
