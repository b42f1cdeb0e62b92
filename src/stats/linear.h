/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multiple linear regression, and what each predictor contributes to the target's mean. */
#ifndef VP_STATS_LINEAR_H
#define VP_STATS_LINEAR_H

#include "stats/evaluate.h"
#include "stats/lstsq.h"
#include "stats/prepare.h"

struct vp_linear_options {
	bool nonneg; /* no coefficient below zero; the constant is free */
};

struct vp_linear_term {
	double coefficient;
	double error; /* standard error; NaN: none */
	double mean;  /* of the predictor */
	double sd;
	double inflation;    /* of the coefficient's variance by the other predictors */
	double contribution; /* percent of the target's mean; NaN if that is 0 */
	bool unclear;        /* depends linearly on others: the coefficient is one of many */
	uint32_t group;
};

struct vp_linear {
	struct vp_linear_options options;
	struct vp_inputs inputs;
	char *target;
	size_t rows, rank;
	struct vp_linear_term *terms; /* of each input */
	double constant, constant_error;
	double constant_contribution;
	double mean;     /* of the target */
	double residual; /* standard deviation of the residuals, with the degrees of freedom left */
	struct vp_lstsq fit; /* of the standardised predictors */
};

/* Fits to `n` rows (at least one) whose target is known. Free with vp_linear_free(). */
struct vp_linear *vp_linear_build(const struct vp_data *data, const uint32_t *rows, size_t n,
				  const struct vp_linear_options *options);
void vp_linear_free(struct vp_linear *model);
/* The prediction for a row of a data set with the same columns. */
double vp_linear_row(const struct vp_linear *model, const struct vp_data *data, size_t row);
/* How much the row alone decides its own prediction: between 1/n and 1. */
double vp_linear_leverage(const struct vp_linear *model, const struct vp_data *data, size_t row);
/* Regressions as a learner; `options` must outlive it. */
struct vp_learner vp_linear_learner(const struct vp_linear_options *options);

/*
 * Groups redundant predictors: single linkage of |correlation| > 0.9, and a predictor whose
 * variance inflation is above 10 with the one that it is most correlated with. Sets each term's
 * group, numbered from 0 in order of the first member; returns how many there are.
 */
size_t vp_linear_group(struct vp_linear *model, const struct vp_data *data);

#endif
