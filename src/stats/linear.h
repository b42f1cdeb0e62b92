/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multiple linear regression, with each predictor's contribution to the target's mean. */
#ifndef VP_STATS_LINEAR_H
#define VP_STATS_LINEAR_H

#include "stats/evaluate.h"
#include "stats/lstsq.h"
#include "stats/prepare.h"

struct vp_linear_options {
	bool nonneg; /* no negative coefficients; the constant is not restricted */
};

struct vp_linear_term {
	double coefficient;
	double error; /* standard error; NaN: unknown */
	double mean;  /* mean of the predictor */
	double sd;
	double inflation;    /* variance inflation factor */
	double contribution; /* percent of the target's mean; NaN if the mean is 0 */
	bool unclear;        /* linearly dependent on others: the coefficient is not unique */
	uint32_t group;
};

struct vp_linear {
	struct vp_linear_options options;
	struct vp_inputs inputs;
	char *target;
	size_t rows, rank;
	struct vp_linear_term *terms; /* one per input */
	double constant, constant_error;
	double constant_contribution;
	double mean;         /* mean of the target */
	double residual;     /* standard deviation of the residuals, with the remaining degrees of
				freedom */
	struct vp_lstsq fit; /* with standardised predictors */
};

/* Fits to `n` rows (at least one) with a known target. Free with vp_linear_free(). */
struct vp_linear *vp_linear_build(const struct vp_data *data, const uint32_t *rows, size_t n,
				  const struct vp_linear_options *options);
void vp_linear_free(struct vp_linear *model);
/* The prediction for a row of a data set with the same columns. */
double vp_linear_row(const struct vp_linear *model, const struct vp_data *data, size_t row);
/* Leverage of the row: its influence on its own prediction, between 1/n and 1. */
double vp_linear_leverage(const struct vp_linear *model, const struct vp_data *data, size_t row);
/* Linear regression as a learner; `options` must outlive it. */
struct vp_learner vp_linear_learner(const struct vp_linear_options *options);

/*
 * Groups redundant predictors: single linkage with |correlation| > 0.9, and predictors with a
 * variance inflation above 10 with the one that they correlate most with. Sets each term's group,
 * numbered from 0 by first member; returns the number of groups.
 */
size_t vp_linear_group(struct vp_linear *model, const struct vp_data *data);

#endif
