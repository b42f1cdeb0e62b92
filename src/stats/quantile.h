/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_STATS_QUANTILE_H
#define VP_STATS_QUANTILE_H

#include <stddef.h>

/* The quantile `p` (0 to 1) of ascending values, with linear interpolation as in R's type 7 and
 * spreadsheets; n > 0. */
double vp_quantile(const double *sorted, size_t n, double p);
/* Sorts in ascending order. */
void vp_quantile_sort(double *values, size_t n);
/* 1.4826 times the median absolute deviation: the standard deviation of a normal distribution,
 * robust against outliers. Sorts the values. */
double vp_robust_deviation(double *values, size_t n);

#endif
