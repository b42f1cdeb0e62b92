/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_STATS_QUANTILE_H
#define VP_STATS_QUANTILE_H

#include <stddef.h>

/*
 * The value that a part `p` (0 to 1) of the values is below; between two of them linearly, as R's
 * type 7 and spreadsheets do. `sorted` is ascending; n > 0.
 */
double vp_quantile(const double *sorted, size_t n, double p);
/* Sorts in ascending order. */
void vp_quantile_sort(double *values, size_t n);
/* 1.4826 times the median distance from the median: the standard deviation of a normal
 * distribution, whatever a few outliers do. Sorts the values. */
double vp_robust_deviation(double *values, size_t n);

#endif
