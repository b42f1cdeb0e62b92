/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Non-negative least squares (Lawson and Hanson 1974, chapter 23). */
#ifndef VP_STATS_NNLS_H
#define VP_STATS_NNLS_H

#include <stddef.h>

/* Minimises b'Gb/2 - c'b for b >= 0. G: n x n, row-major, positive definite, such as products of
 * centred columns with a ridge; c: their products with the target. */
void vp_nnls(const double *products, const double *with_target, size_t n, double *b);

#endif
