/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Least squares by Householder QR with column pivoting, as in LAPACK's dgelsy (unit tests compare
 * both). BLAS is not used: every fast BLAS starts a thread pool when loaded, which a program that
 * measures the host must not do.
 */
#ifndef VP_STATS_LSTSQ_H
#define VP_STATS_LSTSQ_H

#include <stdbool.h>
#include <stddef.h>

struct vp_lstsq {
	size_t n, k, rank;
	double *r;       /* k x k upper triangle, row-major, in pivoted order */
	size_t *pivot;   /* column at each position */
	double *b;       /* minimum-norm solution, by column */
	bool *unclear;   /* the column is linearly dependent: its coefficient is not unique */
	double *spread;  /* diagonal of (A'A)^-1; NaN where unclear */
	double residual; /* residual sum of squares */
};

/* `a` (n rows, column-major) and y are overwritten. A column counts as dependent if its remainder
 * is below `tolerance` times the largest. */
void vp_lstsq_solve(struct vp_lstsq *fit, double *a, size_t n, size_t k, double *y,
		    double tolerance);
void vp_lstsq_deinit(struct vp_lstsq *fit);
/* Leverage of row `x` (k values): its squared length in the metric of (A'A)^-1. */
double vp_lstsq_leverage(const struct vp_lstsq *fit, const double *x);

#endif
