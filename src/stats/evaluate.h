/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How good predictions are: the measures of weka.classifiers.Evaluation. */
#ifndef VP_STATS_EVALUATE_H
#define VP_STATS_EVALUATE_H

#include "stats/m5.h"

/* Sums over predictions; add them with vp_score_add(). */
struct vp_score {
	double n, ignored; /* ignored: the target was missing */
	double sum, squares, predicted, predicted_squares, products;
	double absolute_error, squared_error;
	/* The same errors of always predicting the mean of what was learnt from. */
	double mean_absolute_error, mean_squared_error;
};

/* Adds a prediction; `mean` is the target's mean in the training rows. NaN `actual`: ignored. */
void vp_score_add(struct vp_score *score, double actual, double predicted, double mean);
/* Pearson's r; 0 if either side has no variance. */
double vp_score_correlation(const struct vp_score *score);
/* Mean absolute, root mean squared, relative absolute and root relative squared error. */
double vp_score_mae(const struct vp_score *score);
double vp_score_rmse(const struct vp_score *score);
double vp_score_rae(const struct vp_score *score);  /* percent */
double vp_score_rrse(const struct vp_score *score); /* percent */

/* A way to make predictions, for cross-validation. */
struct vp_learner {
	/* Learns from rows whose target is known; any number of threads may call it at once. */
	void *(*learn)(const void *options, const struct vp_data *data, const uint32_t *rows,
		       size_t n);
	double (*predict)(const void *model, const struct vp_data *data, size_t row);
	void (*forget)(void *model);
	const void *options;
	/* In which order it learns rows means nothing to it, but to the time that it takes. */
	bool any_order;
};

/* Model trees as a learner; `options` must outlive it. */
struct vp_learner vp_m5_learner(const struct vp_m5_options *options);

/* Predicts the rows that were learnt from. */
void vp_score_training(const struct vp_learner *learner, const void *model,
		       const struct vp_data *data, struct vp_score *score);
/*
 * Cross-validation with WEKA's folds (seed 1), in as many threads as there are processors.
 * 2 <= folds <= rows. `predicted` (by row; may be NULL) gets each row's prediction by the model
 * that has not seen it.
 */
void vp_cross_validate(const struct vp_learner *learner, const struct vp_data *data, size_t folds,
		       struct vp_score *score, double *predicted);
/* Leaves out one label of a column at a time: `groups` holds each row's. */
void vp_leave_group_out(const struct vp_learner *learner, const struct vp_data *data,
			const uint32_t *groups, size_t n_groups, struct vp_score *scores,
			double *predicted);

#endif
