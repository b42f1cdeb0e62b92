/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mean of a repeatedly observed share, with its confidence interval. */
#ifndef VP_STATS_MEAN_H
#define VP_STATS_MEAN_H

#include <stddef.h>

#include "base/vec.h"

/* Minimum number of observations for a confidence interval. */
enum { VP_MEAN_MIN = 3 };

struct vp_observation {
	double amount, whole;
};

typedef VP_VEC(struct vp_observation) vp_observations;

struct vp_mean {
	double value;         /* sum of all amounts / sum of all wholes */
	double error_squared; /* its standard error, squared */
	size_t count;         /* number of observations used for the error */
};

/* The mean share, times `scale`. The error uses only observations of at least half the size of the
 * largest: a short one at the end has little information. */
struct vp_mean vp_mean_of(const vp_observations *all, double scale);
/* Two-sided 95% quantile of Student's t. */
double vp_student(double degrees);
/* Half width of the 95% confidence interval; requires at least VP_MEAN_MIN observations. */
double vp_mean_margin(const struct vp_mean *mean);

#endif
