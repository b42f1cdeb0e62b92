/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/lstsq.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

/* A weight of a dependent column below this is rounding error. */
#define NO_WEIGHT 1e-8
/* A smaller sum of squares may have lost terms to underflow. */
#define SMALLEST_SQUARES 1e-200

static double dot(const double *a, const double *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static double norm(const double *a, size_t n)
{
	double most = 0, sum = dot(a, a, n);

	if (sum > SMALLEST_SQUARES && sum < INFINITY)
		return sqrt(sum);
	sum = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(a[i]));
	if (most == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		sum += (a[i] / most) * (a[i] / most);
	return most * sqrt(sum);
}

/* Turns `v` into a Householder reflector that maps it to (length, 0, …); returns the length. */
static double make_reflector(double *v, size_t n, double *scale)
{
	double length = norm(v, n);

	if (v[0] > 0)
		length = -length;
	*scale = 0;
	if (length != 0) {
		double first = v[0] - length;
		for (size_t i = 1; i < n; i++)
			v[i] /= first;
		v[0] = 1;
		*scale = -first / length;
	}
	return length;
}

static void reflect(const double *v, double scale, double *x, size_t n)
{
	double by = scale * dot(v, x, n);

	for (size_t i = 0; i < n; i++)
		x[i] -= by * v[i];
}

/* The column with the largest remainder below the finished rows; *left: its length. */
static size_t longest(double *const *columns, size_t from, size_t k, size_t n, double *left)
{
	size_t best = from;

	*left = -1;
	for (size_t j = from; j < k; j++) {
		double length = norm(columns[j] + from, n - from);
		if (length > *left) {
			*left = length;
			best = j;
		}
	}
	return best;
}

static void factor(struct vp_lstsq *fit, double **columns, double *y, double tolerance)
{
	size_t n = fit->n, k = fit->k;
	double first = 0, left, scale;

	for (size_t j = 0; j < k && j < n; j++) {
		size_t best = longest(columns, j, k, n, &left);
		if (j == 0)
			first = left;
		if (!(left > tolerance * first))
			break;
		double *column = columns[best];
		columns[best] = columns[j];
		columns[j] = column;
		size_t moved = fit->pivot[best];
		fit->pivot[best] = fit->pivot[j];
		fit->pivot[j] = moved;
		double diagonal = make_reflector(column + j, n - j, &scale);
		for (size_t l = j + 1; l < k; l++)
			reflect(column + j, scale, columns[l] + j, n - j);
		reflect(column + j, scale, y + j, n - j);
		fit->r[j * k + j] = diagonal;
		fit->rank = j + 1;
	}
	for (size_t i = 0; i < fit->rank; i++)
		for (size_t j = i + 1; j < k; j++)
			fit->r[i * k + j] = columns[j][i];
	fit->residual = dot(y + fit->rank, y + fit->rank, n - fit->rank);
}

/* Back substitution: x becomes R11^-1 x. */
static void back_solve(const struct vp_lstsq *fit, double *x)
{
	for (size_t i = fit->rank; i-- > 0;) {
		for (size_t j = i + 1; j < fit->rank; j++)
			x[i] -= fit->r[i * fit->k + j] * x[j];
		x[i] /= fit->r[i * fit->k + i];
	}
}

/* sqrt(spread) is the length of row i of R11^-1. */
static void find_spread(struct vp_lstsq *fit)
{
	VP_AUTO_FREE double *unit = vp_alloc((fit->rank + 1) * sizeof(*unit));

	for (size_t i = 0; i < fit->k; i++)
		fit->spread[i] = 0;
	for (size_t j = 0; j < fit->rank; j++) {
		memset(unit, 0, fit->rank * sizeof(*unit));
		unit[j] = 1;
		back_solve(fit, unit);
		for (size_t i = 0; i <= j; i++)
			fit->spread[fit->pivot[i]] += unit[i] * unit[i];
	}
	for (size_t i = 0; i < fit->k; i++)
		if (fit->unclear[i])
			fit->spread[i] = NAN;
}

static void find_unclear(struct vp_lstsq *fit)
{
	VP_AUTO_FREE double *weights = vp_alloc((fit->rank + 1) * sizeof(*weights));

	for (size_t j = fit->rank; j < fit->k; j++) {
		fit->unclear[fit->pivot[j]] = true;
		for (size_t i = 0; i < fit->rank; i++)
			weights[i] = fit->r[i * fit->k + j];
		back_solve(fit, weights);
		for (size_t i = 0; i < fit->rank; i++)
			if (fabs(weights[i]) > NO_WEIGHT)
				fit->unclear[fit->pivot[i]] = true;
	}
}

/* The minimum-norm solution of (R11 R12) b = c: b = Q2 R2'^-1 c, where Q2 R2 = (R11 R12)'. */
static void least_norm(const struct vp_lstsq *fit, const double *c, double *b)
{
	size_t k = fit->k, rank = fit->rank;
	VP_AUTO_FREE double *rows = vp_alloc(rank * k * sizeof(*rows));
	VP_AUTO_FREE double *scales = vp_alloc(rank * sizeof(*scales));
	VP_AUTO_FREE double *diagonal = vp_alloc(rank * sizeof(*diagonal));

	memcpy(rows, fit->r, rank * k * sizeof(*rows));
	for (size_t i = 0; i < rank; i++) {
		diagonal[i] = make_reflector(rows + i * k + i, k - i, &scales[i]);
		for (size_t j = i + 1; j < rank; j++)
			reflect(rows + i * k + i, scales[i], rows + j * k + i, k - i);
	}
	memset(b, 0, k * sizeof(*b));
	for (size_t i = 0; i < rank; i++)
		b[i] = (c[i] - dot(rows + i * k, b, i)) / diagonal[i];
	for (size_t i = rank; i-- > 0;)
		reflect(rows + i * k + i, scales[i], b + i, k - i);
}

void vp_lstsq_solve(struct vp_lstsq *fit, double *a, size_t n, size_t k, double *y,
		    double tolerance)
{
	VP_AUTO_FREE double **columns = vp_alloc((k + 1) * sizeof(*columns));
	VP_AUTO_FREE double *pivoted = vp_alloc((k + 1) * sizeof(*pivoted));

	*fit = (struct vp_lstsq){.n = n, .k = k};
	fit->r = vp_alloc(k * k * sizeof(*fit->r));
	fit->pivot = vp_alloc(k * sizeof(*fit->pivot));
	fit->b = vp_alloc(k * sizeof(*fit->b));
	fit->unclear = vp_alloc(k);
	fit->spread = vp_alloc(k * sizeof(*fit->spread));
	for (size_t j = 0; j < k; j++) {
		columns[j] = a + j * n;
		fit->pivot[j] = j;
	}
	factor(fit, columns, y, tolerance);
	if (fit->rank < k) {
		least_norm(fit, y, pivoted);
	} else {
		memcpy(pivoted, y, k * sizeof(*pivoted));
		back_solve(fit, pivoted);
	}
	for (size_t j = 0; j < k; j++)
		fit->b[fit->pivot[j]] = pivoted[j];
	find_unclear(fit);
	find_spread(fit);
}

void vp_lstsq_deinit(struct vp_lstsq *fit)
{
	free(fit->r);
	free(fit->pivot);
	free(fit->b);
	free(fit->unclear);
	free(fit->spread);
	*fit = (struct vp_lstsq){0};
}

double vp_lstsq_leverage(const struct vp_lstsq *fit, const double *x)
{
	VP_AUTO_FREE double *q = vp_alloc((fit->rank + 1) * sizeof(*q));
	double sum = 0;

	for (size_t i = 0; i < fit->rank; i++) {
		q[i] = x[fit->pivot[i]];
		for (size_t j = 0; j < i; j++)
			q[i] -= fit->r[j * fit->k + i] * q[j];
		q[i] /= fit->r[i * fit->k + i];
		sum += q[i] * q[i];
	}
	return sum;
}
