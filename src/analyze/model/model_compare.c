/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/model/model_compare.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "stats/data.h"
#include "stats/evaluate.h"
#include "stats/linear.h"

static double merged_label(struct vp_column *to, const char *label)
{
	size_t index = vp_column_find_label(to, label);

	if (index == VP_DATA_NONE) {
		index = to->labels.count;
		vp_vec_push(&to->labels, vp_strdup(label));
	}
	return (double)index;
}

static struct vp_error *merge_column(const struct vp_data *sides, const char *const *paths,
				     const char *name, struct vp_data *merged)
{
	const struct vp_column *from[VP_SIDES] = {NULL};
	size_t row = 0;

	for (size_t side = 0; side < VP_SIDES; side++) {
		size_t index = vp_data_find(&sides[side], name);
		if (index != VP_DATA_NONE)
			from[side] = &sides[side].columns.at[index];
	}
	enum vp_data_type type = from[from[VP_NATIVE] ? VP_NATIVE : VP_VIRTUAL]->type;
	for (size_t side = 0; side < VP_SIDES; side++)
		if (from[side] ? from[side]->type != type : type == VP_DATA_NOMINAL)
			return vp_error_new("%s: column '%s': expected %s, as in the other file",
					    paths[side], name,
					    type == VP_DATA_NUMERIC ? "numbers" : "words");
	struct vp_column *to = vp_data_column_add(merged, vp_strdup(name), type);
	to->values = vp_realloc_array(NULL, merged->rows, sizeof(double));
	for (size_t side = 0; side < VP_SIDES; side++)
		for (size_t i = 0; i < sides[side].rows; i++) {
			double value = from[side] ? from[side]->values[i] : 0;
			if (type == VP_DATA_NOMINAL && !isnan(value))
				value = merged_label(to, from[side]->labels.at[(size_t)value]);
			to->values[row++] = value;
		}
	return NULL;
}

static struct vp_error *model_compare_merge_columns(const struct vp_data *sides,
						    const char *const *paths,
						    struct vp_data *merged)
{
	const char *target = sides[VP_NATIVE].columns.at[sides[VP_NATIVE].target].name;

	for (size_t side = 0; side < VP_SIDES; side++) {
		if (vp_data_find(&sides[side], target) == VP_DATA_NONE)
			return vp_error_new("%s: no column '%s'", paths[side], target);
		vp_vec_each (&sides[side].columns, column) {
			if (!strcmp(column->name, VP_MERGED_COLUMN))
				return vp_error_new("%s: column '%s' is not allowed here",
						    paths[side], VP_MERGED_COLUMN);
			if (strcmp(column->name, target) &&
			    vp_data_find(merged, column->name) == VP_DATA_NONE)
				VP_TRY(merge_column(sides, paths, column->name, merged));
		}
	}
	merged->target = merged->columns.count;
	return merge_column(sides, paths, target, merged);
}

struct vp_error *vp_comparison_merge(const struct vp_data *sides, const char *const *paths,
				     struct vp_data *merged)
{
	*merged = (struct vp_data){.name = vp_strdup("merged"),
				   .rows = sides[VP_NATIVE].rows + sides[VP_VIRTUAL].rows};
	struct vp_error *error = model_compare_merge_columns(sides, paths, merged);
	if (error)
		vp_data_deinit(merged);
	return error;
}

void vp_comparison_mark(struct vp_data *merged, size_t native_rows)
{
	vp_data_column_add(merged, vp_strdup(VP_MERGED_COLUMN), VP_DATA_NUMERIC);
	struct vp_column *columns = merged->columns.at;
	size_t last = merged->columns.count - 1;
	struct vp_column mark = columns[last];

	memmove(columns + 1, columns, last * sizeof(*columns));
	mark.values = vp_realloc_array(NULL, merged->rows, sizeof(double));
	for (size_t row = 0; row < merged->rows; row++)
		mark.values[row] = row >= native_rows;
	columns[0] = mark;
	merged->target++;
}

/* The group of a column: that of its first input. A column that varies on one side also varies in
 * the merged data. */
static size_t group_of(const struct vp_linear *all, size_t column)
{
	size_t j = 0;

	while (all->inputs.at.at[j].column != column)
		j++;
	return all->terms[j].group;
}

/* Fits one side, and adds each predictor's contribution to its group. */
static void add_side(struct vp_comparison *comparison, const struct vp_data *merged,
		     const uint32_t *rows, size_t n, size_t side,
		     const struct vp_linear_options *options, const struct vp_linear *all)
{
	struct vp_linear *model = vp_linear_build(merged, rows, n, options);
	const double *y = merged->columns.at[merged->target].values;
	size_t constant = comparison->groups.count - 1;
	struct vp_score score = {0};

	comparison->mean[side] = model->mean;
	comparison->groups.at[constant].part[side] = model->constant;
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		size_t group = group_of(all, model->inputs.at.at[j].column);
		comparison->groups.at[group].part[side] +=
		    model->terms[j].coefficient * model->terms[j].mean;
	}
	for (size_t i = 0; i < n; i++)
		vp_score_add(&score, y[rows[i]], vp_linear_row(model, merged, rows[i]),
			     model->mean);
	comparison->correlation[side] = vp_score_correlation(&score);
	vp_linear_free(model);
}

static struct vp_error *find_paths(struct vp_comparison *comparison, const struct vp_data *merged,
				   size_t native_rows, const char *path_column)
{
	size_t index = path_column ? vp_data_find(merged, path_column) : 0;

	if (index == VP_DATA_NONE)
		return vp_error_new("option --path: no column '%s'", path_column);
	const struct vp_column *column = &merged->columns.at[index];
	for (size_t row = 0; row < merged->rows; row++) {
		double length = path_column ? column->values[row] : 1;
		comparison->path[row >= native_rows] += isnan(length) ? 0 : length;
	}
	return NULL;
}

static void add_sides(struct vp_comparison *comparison, const struct vp_data *merged,
		      size_t native_rows, const struct vp_linear_options *options,
		      const struct vp_linear *all)
{
	size_t n, native = 0;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(merged, &n);

	while (native < n && rows[native] < native_rows)
		native++;
	comparison->rows[VP_NATIVE] = native;
	comparison->rows[VP_VIRTUAL] = n - native;
	add_side(comparison, merged, rows, native, VP_NATIVE, options, all);
	add_side(comparison, merged, rows + native, n - native, VP_VIRTUAL, options, all);
}

struct vp_error *vp_comparison_init(struct vp_comparison *comparison, const struct vp_data *merged,
				    size_t native_rows, const struct vp_linear_options *options,
				    const char *groups_path, const char *path_column)
{
	struct vp_model_groups groups;
	struct vp_error *error = NULL;
	size_t n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(merged, &n);

	*comparison = (struct vp_comparison){0};
	VP_TRY(find_paths(comparison, merged, native_rows, path_column));
	struct vp_linear *all = vp_linear_build(merged, rows, n, options);
	if (groups_path)
		error = vp_model_groups_read(&groups, groups_path, all, merged);
	else
		vp_model_groups_propose(&groups, all, merged);
	if (!error) {
		comparison->target = vp_strdup(all->target);
		vp_vec_each (&groups.at, group)
			vp_vec_push(&comparison->groups,
				    (struct vp_compared_group){.name = VP_TAKE(group->name)});
		vp_vec_push(&comparison->groups,
			    (struct vp_compared_group){.name = vp_strdup("(constant)")});
		add_sides(comparison, merged, native_rows, options, all);
		vp_model_groups_deinit(&groups);
	}
	vp_linear_free(all);
	return error;
}

void vp_comparison_deinit(struct vp_comparison *comparison)
{
	vp_vec_each (&comparison->groups, group)
		free(group->name);
	vp_vec_deinit(&comparison->groups);
	free(comparison->target);
}
