/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/model_linear.h"

#include <math.h>
#include <string.h>

#include "render/decimal.h"
#include "render/table.h"

/* Columns as wide as their longest name, within reason. */
static int name_width(const struct vp_linear *model, const struct vp_model_groups *groups)
{
	size_t width = strlen("(constant)");

	vp_vec_each (&model->inputs.at, input)
		width = strlen(input->name) > width ? strlen(input->name) : width;
	vp_vec_each (&groups->at, group)
		width = strlen(group->name) > width ? strlen(group->name) : width;
	return width > 48 ? 48 : (int)width;
}

static void put_cell(double value, const char *format, struct vp_buffer *out)
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
	put_cell(coefficient, "%.6g", out);
	put_cell(error, "%.4g", out);
	put_cell(inflation, "%.4g", out);
	put_cell(contribution, "%.2f", out);
}

static void put_rank(const struct vp_linear *model, struct vp_buffer *out)
{
	const char *comma = "";

	if (model->rank == model->inputs.at.count)
		return;
	vp_buffer_printf(
	    out,
	    "\nRank deficient: %zu predictors, rank %zu. These depend linearly on each "
	    "other, so that only\ntheir sum is known, not each one's coefficient (the "
	    "shortest solution is shown): ",
	    model->inputs.at.count, model->rank);
	for (size_t j = 0; j < model->inputs.at.count; j++)
		if (model->terms[j].unclear) {
			vp_buffer_printf(out, "%s%s", comma, model->inputs.at.at[j].name);
			comma = ", ";
		}
	vp_buffer_string(out, "\n");
}

/* A column with one value explains nothing. */
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
	const char *before = "\nThe same in every row, and left out: ";

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
	int width = name_width(model, groups);

	vp_buffer_printf(out, "Linear model of %s: %zu rows, mean %.6g%s\n\n", model->target,
			 model->rows, model->mean,
			 model->options.nonneg ? ", no coefficient below 0" : "");
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
	vp_buffer_printf(out, "\n\n%-*s  %12s  %12s\n", width, "Group", "Share %", "Of the mean");
	vp_vec_each (&groups->at, group) {
		vp_buffer_printf(out, "%-*s", width, group->name);
		put_cell(group->contribution, "%.2f", out);
		put_cell(group->part, "%.6g", out);
		vp_buffer_string(out, "\n");
	}
	vp_buffer_printf(out, "%-*s", width, "(constant)");
	put_cell(model->constant_contribution, "%.2f", out);
	put_cell(model->constant, "%.6g", out);
	vp_buffer_string(out, "\n");
	if (model->mean == 0)
		vp_buffer_string(out, "\nThe target's mean is 0: there are no shares of it\n");
	put_constants(model, data, out);
	put_rank(model, out);
}

static void put_field(double value, struct vp_buffer *out)
{
	vp_buffer_string(out, ",");
	if (isfinite(value))
		vp_render_json_number(value, out);
}

void vp_render_linear_csv(const struct vp_linear *model, const struct vp_model_groups *groups,
			  struct vp_buffer *out)
{
	vp_buffer_string(out, "predictor,coefficient,error,inflation,share_percent,group\n");
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		const struct vp_linear_term *term = &model->terms[j];
		vp_render_csv_field(model->inputs.at.at[j].name, out);
		put_field(term->coefficient, out);
		put_field(term->error, out);
		put_field(term->inflation, out);
		put_field(term->contribution, out);
		vp_buffer_string(out, ",");
		vp_render_csv_field(groups->at.at[term->group].name, out);
		vp_buffer_string(out, "\n");
	}
	vp_buffer_string(out, "(constant)");
	put_field(model->constant, out);
	put_field(model->constant_error, out);
	put_field(NAN, out);
	put_field(model->constant_contribution, out);
	vp_buffer_string(out, ",\n");
}

static void put_pair(const char *key, double value, struct vp_buffer *out)
{
	vp_buffer_printf(out, ", \"%s\": ", key);
	vp_render_json_number(value, out);
}

static void put_json_terms(const struct vp_linear *model, const struct vp_model_groups *groups,
			   struct vp_buffer *out)
{
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		const struct vp_linear_term *term = &model->terms[j];
		vp_buffer_string(out, j ? ",\n{\"name\": " : "{\"name\": ");
		vp_render_json_text(model->inputs.at.at[j].name, out);
		put_pair("coefficient", term->coefficient, out);
		put_pair("error", term->error, out);
		put_pair("inflation", term->inflation, out);
		put_pair("mean", term->mean, out);
		put_pair("share_percent", term->contribution, out);
		vp_buffer_printf(
		    out, ", \"dependent\": %s, \"group\": ", term->unclear ? "true" : "false");
		vp_render_json_text(groups->at.at[term->group].name, out);
		vp_buffer_string(out, "}");
	}
}

void vp_render_linear_json(const struct vp_linear *model, const struct vp_model_groups *groups,
			   const struct vp_data *data, struct vp_buffer *out)
{
	vp_buffer_string(out, "{\"target\": ");
	vp_render_json_text(model->target, out);
	vp_buffer_printf(out, ", \"rows\": %zu, \"rank\": %zu, \"nonneg\": %s", model->rows,
			 model->rank, model->options.nonneg ? "true" : "false");
	put_pair("mean", model->mean, out);
	put_pair("residual", model->residual, out);
	vp_buffer_string(out, ",\n\"constant\": {\"name\": \"(constant)\"");
	put_pair("coefficient", model->constant, out);
	put_pair("error", model->constant_error, out);
	put_pair("share_percent", model->constant_contribution, out);
	vp_buffer_string(out, "},\n\"predictors\": [");
	put_json_terms(model, groups, out);
	vp_buffer_string(out, "],\n\"constant_columns\": [");
	const char *comma = "";
	for (size_t i = 0; i < data->columns.count; i++)
		if (!is_used(model, data, i)) {
			vp_buffer_string(out, comma);
			vp_render_json_text(data->columns.at[i].name, out);
			comma = ", ";
		}
	vp_buffer_string(out, "],\n\"groups\": [");
	for (size_t i = 0; i < groups->at.count; i++) {
		vp_buffer_string(out, i ? ",\n{\"name\": " : "{\"name\": ");
		vp_render_json_text(groups->at.at[i].name, out);
		put_pair("share_percent", groups->at.at[i].contribution, out);
		put_pair("part", groups->at.at[i].part, out);
		vp_buffer_printf(out, ", \"members\": %zu}", groups->at.at[i].members);
	}
	vp_buffer_string(out, "]}");
}
