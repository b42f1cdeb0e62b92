/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The linear model of one node: WEKA's LinearRegression with its M5 selection of predictors. */
#ifndef VP_STATS_M5_FIT_H
#define VP_STATS_M5_FIT_H

#include "stats/prepare.h"

struct vp_linear_model {
	double *coefficients; /* per input; 0: not in the model */
	double intercept;
	size_t parameters; /* number of nonzero coefficients */
};

/* Buffers for the largest node, allocated once per tree. */
struct vp_fit_work {
	double *gathered; /* values of the candidates, in blocks of rows */
	size_t room;
};

void vp_fit_work_deinit(struct vp_fit_work *work);

struct vp_fit_task {
	const struct vp_matrix *matrix;
	const uint32_t *rows;
	size_t n;
	const uint32_t *candidates; /* ascending inputs */
	size_t n_candidates;
	bool nonneg;
};

/* Fits a model; `model->coefficients` must have space for all inputs. */
void vp_m5_fit(const struct vp_fit_task *task, struct vp_fit_work *work,
	       struct vp_linear_model *model);

#endif
