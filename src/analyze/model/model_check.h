/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the validity of a model: rows that it does not explain, rows with a large influence on
 * it. */
#ifndef VP_ANALYZE_MODEL_MODEL_CHECK_H
#define VP_ANALYZE_MODEL_MODEL_CHECK_H

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "stats/data.h"
#include "stats/evaluate.h"
#include "stats/linear.h"

enum { VP_CHECK_LINEAR, VP_CHECK_TREE, VP_CHECK_MODELS };

struct vp_checked_row {
	size_t row; /* from 0 */
	double actual;
	double predicted[VP_CHECK_MODELS]; /* by models trained without the row */
	double distance[VP_CHECK_MODELS];  /* of the residual, in robust standard deviations */
	double leverage;
	bool influential; /* high leverage */
	bool unexplained; /* large residuals in all models */
};

struct vp_checked_workload {
	const char *name;
	struct vp_score score[VP_CHECK_MODELS]; /* by models trained without the workload */
};

struct vp_model_check {
	size_t folds;
	struct vp_score score[VP_CHECK_MODELS]; /* cross-validated */
	double quantiles[VP_CHECK_MODELS][5];   /* of the residuals: minimum, quartiles, maximum */
	double deviation[VP_CHECK_MODELS];      /* robust standard deviation of the residuals */
	double high_leverage;                   /* threshold */
	size_t influential, unexplained;
	VP_VEC(struct vp_checked_row) rows; /* rows with a known target */
	VP_VEC(struct vp_checked_workload) workloads;
	struct vp_data by_workload; /* owns the names of workloads */
};

/* `workload`: column with each row's workload, not the target; or NULL. It is removed from the
 * data. 2 <= folds <= rows. Errors: no such column, only one workload. */
struct vp_error *vp_model_check_init(struct vp_model_check *check, struct vp_data *data,
				     const char *workload, size_t folds,
				     const struct vp_linear_options *linear,
				     const struct vp_m5_options *tree) VP_MUST_CHECK;
void vp_model_check_deinit(struct vp_model_check *check);

#endif
