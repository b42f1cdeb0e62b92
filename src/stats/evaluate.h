/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quality of predictions: the measures of weka.classifiers.Evaluation. */
#ifndef VP_STATS_EVALUATE_H
#define VP_STATS_EVALUATE_H

#include "stats/m5.h"

/* Sums over predictions; add them with vp_score_add(). */
struct vp_score {
	double n, ignored; /* ignored: without a target */
	double sum, squares, predicted, predicted_squares, products;
	double absolute_error, squared_error;
	/* The same errors for predicting always the mean of the training data. */
	double mean_absolute_error, mean_squared_error;
};

/* Adds a prediction; `mean`: mean of the target in the training data. NaN `actual`: ignored. */
void vp_score_add(struct vp_score *score, double actual, double predicted, double mean);
/* Pearson's r; 0 if either side has no variance. */
double vp_score_correlation(const struct vp_score *score);
/* Mean absolute, root mean squared, relative absolute and root relative squared error. */
double vp_score_mae(const struct vp_score *score);
double vp_score_rmse(const struct vp_score *score);
double vp_score_rae(const struct vp_score *score);  /* percent */
double vp_score_rrse(const struct vp_score *score); /* percent */

/* A learning method, for cross-validation. */
struct vp_learner {
	/* Learns from rows with a known target; thread-safe. */
	void *(*learn)(const void *options, const struct vp_data *data, const uint32_t *rows,
		       size_t n);
	double (*predict)(const void *model, const struct vp_data *data, size_t row);
	void (*forget)(void *model);
	const void *options;
	/* The result does not depend on the order of the rows. */
	bool any_order;
};

/* Model trees as a learner; `options` must outlive it. */
struct vp_learner vp_m5_learner(const struct vp_m5_options *options);

/* Predicts the training rows. */
void vp_score_training(const struct vp_learner *learner, const void *model,
		       const struct vp_data *data, struct vp_score *score);
/* Cross-validation with WEKA's folds (seed 1), with one thread per processor. 2 <= folds <= rows.
 * `predicted` (by row; may be NULL): prediction for each row by the model trained without it. */
void vp_cross_validate(const struct vp_learner *learner, const struct vp_data *data, size_t folds,
		       struct vp_score *score, double *predicted);
/* Cross-validation that leaves out one label at a time: `groups` has each row's label. */
void vp_leave_group_out(const struct vp_learner *learner, const struct vp_data *data,
			const uint32_t *groups, size_t n_groups, struct vp_score *scores,
			double *predicted);

#endif
