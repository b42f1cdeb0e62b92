/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_model_linear.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/vec.h"
#include "render/render_table.h"
#include "stats/data.h"
#include "stats/linear.h"

/* Width of the name column: the longest name, within limits. */
static int render_model_linear_name_width(const struct vp_linear *model,
					  const struct vp_model_groups *groups)
{
	size_t width = strlen("(constant)");

	vp_vec_each (&model->inputs.at, input)
		width = strlen(input->name) > width ? strlen(input->name) : width;
	vp_vec_each (&groups->at, group)
		width = strlen(group->name) > width ? strlen(group->name) : width;
	return width > 48 ? 48 : (int)width;
}

static void put_figure(double value, const char *format, struct vp_buffer *out)
{
	char text[40];

	if (isnan(value))
		snprintf(text, sizeof(text), "-");
	else
		snprintf(text, sizeof(text), format, value);
	vp_buffer_printf(out, "  %12s", text);
}

static void put_term(const char *name, int width, double coefficient, double error,
		     double inflation, double contribution, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%-*s", width, name);
	put_figure(coefficient, "%.6g", out);
	put_figure(error, "%.4g", out);
	put_figure(inflation, "%.4g", out);
	put_figure(contribution, "%.2f", out);
}

static void put_rank(const struct vp_linear *model, struct vp_buffer *out)
{
	const char *comma = "";

	if (model->rank == model->inputs.at.count)
		return;
	vp_buffer_printf(out,
			 "\nRank deficient: %zu predictors, rank %zu. These are linearly "
			 "dependent: only their\ncombined effect is known, not each coefficient "
			 "(the minimum-norm solution is shown):  ",
			 model->inputs.at.count, model->rank);
	for (size_t j = 0; j < model->inputs.at.count; j++)
		if (model->terms[j].unclear) {
			vp_buffer_printf(out, "%s%s", comma, model->inputs.at.at[j].name);
			comma = ", ";
		}
	vp_buffer_string(out, "\n");
}

/* A constant column is not a predictor. */
static bool is_used(const struct vp_linear *model, const struct vp_data *data, size_t column)
{
	if (column == data->target)
		return true;
	vp_vec_each (&model->inputs.at, input)
		if (input->column == column)
			return true;
	return false;
}

static void put_constants(const struct vp_linear *model, const struct vp_data *data,
			  struct vp_buffer *out)
{
	const char *before = "\nConstant columns, left out: ";

	for (size_t i = 0; i < data->columns.count; i++)
		if (!is_used(model, data, i)) {
			vp_buffer_printf(out, "%s%s", before, data->columns.at[i].name);
			before = ", ";
		}
	vp_buffer_string(out, *before == '\n' ? "" : "\n");
}

void vp_render_linear_text(const struct vp_linear *model, const struct vp_model_groups *groups,
			   const struct vp_data *data, struct vp_buffer *out)
{
	int width = render_model_linear_name_width(model, groups);

	vp_buffer_printf(out, "Linear model of %s: %zu rows, mean %.6g%s\n\n", model->target,
			 model->rows, model->mean,
			 model->options.nonneg ? ", nonnegative coefficients" : "");
	vp_buffer_printf(out, "%-*s  %12s  %12s  %12s  %12s  Group\n", width, "Predictor",
			 "Coefficient", "Std. error", "Inflation", "Share %");
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		const struct vp_linear_term *term = &model->terms[j];
		put_term(model->inputs.at.at[j].name, width, term->coefficient, term->error,
			 term->inflation, term->contribution, out);
		vp_buffer_printf(out, "  %s\n", groups->at.at[term->group].name);
	}
	put_term("(constant)", width, model->constant, model->constant_error, NAN,
		 model->constant_contribution, out);
	vp_buffer_printf(out, "\n\n%-*s  %12s  %12s\n", width, "Group", "Share %", "Of mean");
	vp_vec_each (&groups->at, group) {
		vp_buffer_printf(out, "%-*s", width, group->name);
		put_figure(group->contribution, "%.2f", out);
		put_figure(group->part, "%.6g", out);
		vp_buffer_string(out, "\n");
	}
	vp_buffer_printf(out, "%-*s", width, "(constant)");
	put_figure(model->constant_contribution, "%.2f", out);
	put_figure(model->constant, "%.6g", out);
	vp_buffer_string(out, "\n");
	if (model->mean == 0)
		vp_buffer_string(out, "\nThe target's mean is 0: no shares can be given\n");
	put_constants(model, data, out);
	put_rank(model, out);
}

static void render_model_linear_put_field(double value, struct vp_buffer *out)
{
	vp_buffer_string(out, ",");
	if (isfinite(value))
		vp_json_put_number(value, out);
}

void vp_render_linear_csv(const struct vp_linear *model, const struct vp_model_groups *groups,
			  struct vp_buffer *out)
{
	vp_buffer_string(out, "predictor,coefficient,error,inflation,share_percent,group\n");
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		const struct vp_linear_term *term = &model->terms[j];
		vp_render_csv_field(model->inputs.at.at[j].name, out);
		render_model_linear_put_field(term->coefficient, out);
		render_model_linear_put_field(term->error, out);
		render_model_linear_put_field(term->inflation, out);
		render_model_linear_put_field(term->contribution, out);
		vp_buffer_string(out, ",");
		vp_render_csv_field(groups->at.at[term->group].name, out);
		vp_buffer_string(out, "\n");
	}
	vp_buffer_string(out, "(constant)");
	render_model_linear_put_field(model->constant, out);
	render_model_linear_put_field(model->constant_error, out);
	render_model_linear_put_field(NAN, out);
	render_model_linear_put_field(model->constant_contribution, out);
	vp_buffer_string(out, ",\n");
}

static void put_json_terms(const struct vp_linear *model, const struct vp_model_groups *groups,
			   struct vp_json *json)
{
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		const struct vp_linear_term *term = &model->terms[j];
		if (j)
			vp_json_line(json);
		vp_json_object(json, NULL);
		vp_json_text(json, "name", model->inputs.at.at[j].name);
		vp_json_number(json, "coefficient", term->coefficient);
		vp_json_number(json, "error", term->error);
		vp_json_number(json, "inflation", term->inflation);
		vp_json_number(json, "mean", term->mean);
		vp_json_number(json, "share_percent", term->contribution);
		vp_json_bool(json, "dependent", term->unclear);
		vp_json_text(json, "group", groups->at.at[term->group].name);
		vp_json_object_end(json);
	}
}

static void put_json_groups(const struct vp_model_groups *groups, struct vp_json *json)
{
	for (size_t i = 0; i < groups->at.count; i++) {
		if (i)
			vp_json_line(json);
		vp_json_object(json, NULL);
		vp_json_text(json, "name", groups->at.at[i].name);
		vp_json_number(json, "share_percent", groups->at.at[i].contribution);
		vp_json_number(json, "part", groups->at.at[i].part);
		vp_json_count(json, "members", groups->at.at[i].members);
		vp_json_object_end(json);
	}
}

static void put_json_constant(const struct vp_linear *model, struct vp_json *json)
{
	vp_json_object(json, "constant");
	vp_json_text(json, "name", "(constant)");
	vp_json_number(json, "coefficient", model->constant);
	vp_json_number(json, "error", model->constant_error);
	vp_json_number(json, "share_percent", model->constant_contribution);
	vp_json_object_end(json);
}

void vp_render_linear_json(const struct vp_linear *model, const struct vp_model_groups *groups,
			   const struct vp_data *data, const char *key, struct vp_json *json)
{
	vp_json_object(json, key);
	vp_json_text(json, "target", model->target);
	vp_json_count(json, "rows", model->rows);
	vp_json_count(json, "rank", model->rank);
	vp_json_bool(json, "nonneg", model->options.nonneg);
	vp_json_number(json, "mean", model->mean);
	vp_json_number(json, "residual", model->residual);
	vp_json_line(json);
	put_json_constant(model, json);
	vp_json_line(json);
	vp_json_array(json, "predictors");
	put_json_terms(model, groups, json);
	vp_json_array_end(json);
	vp_json_line(json);
	vp_json_array(json, "constant_columns");
	for (size_t i = 0; i < data->columns.count; i++)
		if (!is_used(model, data, i))
			vp_json_text(json, NULL, data->columns.at[i].name);
	vp_json_array_end(json);
	vp_json_line(json);
	vp_json_array(json, "groups");
	put_json_groups(groups, json);
	vp_json_array_end(json);
	vp_json_object_end(json);
}
