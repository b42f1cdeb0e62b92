/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/model/model_check.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "stats/m5.h"
#include "stats/quantile.h"

/* A residual above this many standard deviations is unexplained. */
#define FAR 3.0
/* Leverage of a row, as a multiple of the mean, from which it is high (Hoaglin and Welsch 1978:
 * 2). */
#define HIGH 2.0

static void set_distances(struct vp_model_check *check, size_t model)
{
	size_t n = check->rows.count;
	VP_AUTO_FREE double *residuals = vp_alloc((n + 1) * sizeof(*residuals));

	for (size_t i = 0; i < n; i++)
		residuals[i] = check->rows.at[i].actual - check->rows.at[i].predicted[model];
	check->deviation[model] = vp_robust_deviation(residuals, n);
	for (size_t q = 0; q < 5; q++)
		check->quantiles[model][q] = vp_quantile(residuals, n, (double)q / 4);
	vp_vec_each (&check->rows, row) {
		double off = row->actual - row->predicted[model];
		row->distance[model] = off == 0 ? 0 : off / check->deviation[model];
	}
}

static void judge_rows(struct vp_model_check *check)
{
	vp_vec_each (&check->rows, row) {
		row->influential = row->leverage > check->high_leverage;
		row->unexplained = true;
		for (size_t model = 0; model < VP_CHECK_MODELS; model++)
			row->unexplained &= fabs(row->distance[model]) > FAR;
		check->influential += row->influential;
		check->unexplained += row->unexplained;
	}
}

static void model_check_check_rows(struct vp_model_check *check, const struct vp_data *data,
				   const struct vp_learner *learners,
				   const struct vp_linear_options *linear)
{
	const double *y = data->columns.at[data->target].values;
	VP_AUTO_FREE double *predicted = vp_alloc(data->rows * sizeof(*predicted));
	size_t n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);
	struct vp_linear *model = vp_linear_build(data, rows, n, linear);

	for (size_t i = 0; i < n; i++)
		vp_vec_push(&check->rows, ((struct vp_checked_row){
					      .row = rows[i],
					      .actual = y[rows[i]],
					      .leverage = vp_linear_leverage(model, data, rows[i]),
					  }));
	check->high_leverage = HIGH * ((double)model->rank + 1) / (double)n;
	vp_linear_free(model);
	for (size_t m = 0; m < VP_CHECK_MODELS; m++) {
		vp_cross_validate(&learners[m], data, check->folds, &check->score[m], predicted);
		vp_vec_each (&check->rows, row)
			row->predicted[m] = predicted[row->row];
		set_distances(check, m);
	}
	judge_rows(check);
}

static void check_workloads(struct vp_model_check *check, const struct vp_data *data,
			    const struct vp_learner *learners)
{
	const struct vp_column *column = &check->by_workload.columns.at[0];
	size_t n = column->labels.count;
	VP_AUTO_FREE uint32_t *groups = vp_alloc(data->rows * sizeof(*groups));
	VP_AUTO_FREE double *predicted = vp_alloc(data->rows * sizeof(*predicted));
	VP_AUTO_FREE struct vp_score *scores = vp_alloc(n * sizeof(*scores));

	for (size_t row = 0; row < data->rows; row++)
		groups[row] =
		    isnan(column->values[row]) ? UINT32_MAX : (uint32_t)column->values[row];
	for (size_t i = 0; i < n; i++)
		vp_vec_push(&check->workloads,
			    (struct vp_checked_workload){.name = column->labels.at[i]});
	for (size_t m = 0; m < VP_CHECK_MODELS; m++) {
		memset(scores, 0, n * sizeof(*scores));
		vp_leave_group_out(&learners[m], data, groups, n, scores, predicted);
		for (size_t i = 0; i < n; i++)
			check->workloads.at[i].score[m] = scores[i];
	}
}

/* Removes the workload column from the data. */
static struct vp_error *take_workload(struct vp_model_check *check, struct vp_data *data,
				      const char *name)
{
	size_t index = vp_data_find(data, name);

	struct vp_column *column = &data->columns.at[index];
	if (column->type != VP_DATA_NOMINAL || column->labels.count < 2)
		return vp_error_new(
		    "option --workload: expected at least two different values in column '%s'",
		    name);
	vp_vec_push(&check->by_workload.columns, *column);
	check->by_workload.rows = data->rows;
	*column = (struct vp_column){0};
	vp_data_column_remove(data, index);
	return NULL;
}

struct vp_error *vp_model_check_init(struct vp_model_check *check, struct vp_data *data,
				     const char *workload, size_t folds,
				     const struct vp_linear_options *linear,
				     const struct vp_m5_options *tree)
{
	const struct vp_learner learners[] = {
	    [VP_CHECK_LINEAR] = vp_linear_learner(linear), [VP_CHECK_TREE] = vp_m5_learner(tree)};

	*check = (struct vp_model_check){.folds = folds};
	if (workload)
		VP_TRY(take_workload(check, data, workload));
	model_check_check_rows(check, data, learners, linear);
	if (workload)
		check_workloads(check, data, learners);
	return NULL;
}

void vp_model_check_deinit(struct vp_model_check *check)
{
	vp_vec_deinit(&check->rows);
	vp_vec_deinit(&check->workloads);
	vp_data_deinit(&check->by_workload);
}
