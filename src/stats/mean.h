/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shares of a whole, observed repeatedly: their mean, and how sure it is. */
#ifndef VP_STATS_MEAN_H
#define VP_STATS_MEAN_H

#include <stddef.h>

#include "base/vec.h"

/* Fewer observations have no confidence interval. */
enum { VP_MEAN_MIN = 3 };

struct vp_observation {
	double amount, whole;
};

typedef VP_VEC(struct vp_observation) vp_observations;

struct vp_mean {
	double value;         /* all amounts of all wholes */
	double error_squared; /* its standard error, squared */
	size_t count;         /* observations that the error is from */
};

/* The mean share, times `scale`. Its error is that of observations of at least half of the largest
 * whole: a short one at the end adds little. */
struct vp_mean vp_mean_of(const vp_observations *all, double scale);
/* Student's t for 95% on both sides. */
double vp_student(double degrees);
/* Half of the 95% confidence interval of the mean; there are at least VP_MEAN_MIN. */
double vp_mean_margin(const struct vp_mean *mean);

#endif
