/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Least squares with no coefficient below zero (Lawson and Hanson 1974, chapter 23). */
#ifndef VP_STATS_NNLS_H
#define VP_STATS_NNLS_H

#include <stddef.h>

/*
 * Minimises b'Gb/2 - c'b for b >= 0; G is n x n by rows and positive definite, as the products of
 * centred columns with a ridge are; c their products with the target.
 */
void vp_nnls(const double *products, const double *with_target, size_t n, double *b);

#endif
