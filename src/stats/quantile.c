/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/quantile.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/macros.h"

/* 1 / the normal distribution's quantile of 3/4 */
#define NORMAL 1.4826022185056018

static int quantile_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void vp_quantile_sort(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), quantile_compare);
}

double vp_quantile(const double *sorted, size_t n, double p)
{
	double position = p * (double)(n - 1);
	size_t below = (size_t)position;
	size_t above = below + 1 < n ? below + 1 : below;

	return sorted[below] + (position - (double)below) * (sorted[above] - sorted[below]);
}

double vp_robust_deviation(double *values, size_t n)
{
	VP_AUTO_FREE double *distances = vp_alloc((n + 1) * sizeof(*distances));

	vp_quantile_sort(values, n);
	double median = vp_quantile(values, n, 0.5);
	for (size_t i = 0; i < n; i++)
		distances[i] = fabs(values[i] - median);
	vp_quantile_sort(distances, n);
	return NORMAL * vp_quantile(distances, n, 0.5);
}
