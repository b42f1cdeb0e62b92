/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/m5_split.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Values closer than this are equal: WEKA 3.6's Utils.SMALL after a tree has been grown. */
#define SAME 1e-10
/* Impurity is the fifth root of the variance (YongSplitInfo: "order 5"). */
#define ORDER 5.0
/* Each side gets at least 1/SIDE of the rows. */
enum { SIDE = 5 };
/* Error of fifth_root(), about 1e-9; pow() is called only where that could change the decision. */
#define ROOT_ERROR 1e-7

struct sums {
	double n, sum, squares;
};

void vp_split_work_init(struct vp_split_work *work, size_t n)
{
	work->impurity = vp_realloc_array(NULL, n, sizeof(double));
}

void vp_split_work_deinit(struct vp_split_work *work)
{
	free(work->impurity);
}

static struct sums m5_split_sums_of(const double *y, size_t n)
{
	struct sums sums = {.n = (double)n};

	for (size_t i = 0; i < n; i++) {
		sums.sum += y[i];
		sums.squares += y[i] * y[i];
	}
	return sums;
}

static double side_variance(const struct sums *s)
{
	return s->n <= 0 ? 0 : fabs((s->n * s->squares - s->sum * s->sum) / (s->n * s->n));
}

/* A guess from the exponent, then three Newton steps; each squares the relative error. */
static double fifth_root(double x)
{
	uint64_t bits;
	double root;

	memcpy(&bits, &x, sizeof(bits));
	bits = bits / 5 + 0x3325e66666666667ULL;
	memcpy(&root, &bits, sizeof(root));
	for (int i = 0; i < 3; i++) {
		double square = root * root;
		root = 0.8 * root + 0.2 * x / (square * square);
	}
	return root;
}

static bool differ(double a, double b)
{
	return !(a == b || (a - b < SAME && b - a < SAME));
}

static double exact_impurity(double whole, const struct sums *left, const struct sums *right,
			     double n)
{
	double l = pow(side_variance(left), 1.0 / ORDER);
	double r = pow(side_variance(right), 1.0 / ORDER);

	return whole - left->n / n * l - right->n / n * r;
}

static void move_left(double y, struct sums *left, struct sums *right)
{
	left->n += 1;
	right->n -= 1;
	left->sum += y;
	right->sum -= y;
	left->squares += y * y;
	right->squares -= y * y;
}

/* Error bound of an estimate, from the errors of its three roots. */
static double margin(double whole, double impurity)
{
	return ROOT_ERROR * (2 * whole - impurity);
}

/* Estimates the reduction of impurity of all cuts; returns a lower bound of the best one. */
static double estimate(const double *x, const double *y, size_t n, size_t side, double whole,
		       struct vp_split_work *work)
{
	struct sums left = m5_split_sums_of(y, side), right = m5_split_sums_of(y + side, n - side);
	double certain = -INFINITY;

	for (size_t i = side; i + side + 1 < n; i++) {
		move_left(y[i], &left, &right);
		work->impurity[i] = -INFINITY;
		if (!differ(x[i + 1], x[i]))
			continue;
		double l = left.n / (double)n * fifth_root(side_variance(&left));
		double r = right.n / (double)n * fifth_root(side_variance(&right));
		double impurity = whole - l - r;
		work->impurity[i] = impurity;
		if (impurity - margin(whole, impurity) > certain)
			certain = impurity - margin(whole, impurity);
	}
	return certain;
}

bool vp_split_find(const double *x, const double *y, size_t n, struct vp_split_work *work,
		   struct vp_split *best)
{
	size_t side = n < SIDE ? 1 : n / SIDE;
	bool found = false;

	if (n < 4)
		return false;
	struct sums all = m5_split_sums_of(y, n);
	double variance = fabs((all.squares - all.sum * all.sum / all.n) / all.n);
	double whole = pow(variance, 1.0 / ORDER);
	double certain = estimate(x, y, n, side, whole, work);
	struct sums left = m5_split_sums_of(y, side), right = m5_split_sums_of(y + side, n - side);
	best->impurity = -1e20;
	for (size_t i = side; i + side + 1 < n; i++) {
		move_left(y[i], &left, &right);
		double guess = work->impurity[i];
		if (guess == -INFINITY || guess + margin(whole, guess) < certain)
			continue;
		double impurity = exact_impurity(whole, &left, &right, (double)n);
		if (impurity > best->impurity) {
			best->impurity = impurity;
			best->cut = (x[i] + x[i + 1]) * 0.5;
			found = true;
		}
	}
	return found;
}
