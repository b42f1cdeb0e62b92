/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Least squares by Householder QR with column pivoting, as LAPACK's dgelsy does it (the unit tests
 * compare the two). Own code because every BLAS that is fast starts a pool of threads when it is
 * loaded, which a program that measures the host must not do.
 */
#ifndef VP_STATS_LSTSQ_H
#define VP_STATS_LSTSQ_H

#include <stdbool.h>
#include <stddef.h>

struct vp_lstsq {
	size_t n, k, rank;
	double *r;       /* k x k upper triangle, by rows, in pivoted order */
	size_t *pivot;   /* column at each place */
	double *b;       /* the solution of least norm, by column */
	bool *unclear;   /* the column depends on others: its share of b is one of many */
	double *spread;  /* diagonal of (A'A)^-1; NaN where unclear */
	double residual; /* sum of squares */
};

/* Columns of `a` (n rows each, by column) and y are used up. A column counts as dependent when what
 * is left of it is below `tolerance` of the largest. */
void vp_lstsq_solve(struct vp_lstsq *fit, double *a, size_t n, size_t k, double *y,
		    double tolerance);
void vp_lstsq_deinit(struct vp_lstsq *fit);
/* The squared length of row `x` (k values) in the metric of (A'A)^-1: its leverage. */
double vp_lstsq_leverage(const struct vp_lstsq *fit, const double *x);

#endif
