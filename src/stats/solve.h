/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_STATS_SOLVE_H
#define VP_STATS_SOLVE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Solves A x = b in place (b becomes x, A its LU factors): Crout's method with partial pivoting, in
 * the order of additions of JAMA's LUDecomposition, because WEKA's figures depend on the rounding.
 * False: A is exactly singular.
 */
bool vp_solve_lu(double *a, size_t n, double *b);

#endif
