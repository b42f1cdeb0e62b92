/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/solve.h"

#include <math.h>

static void swap_rows(double *a, size_t n, double *b, size_t row, size_t other)
{
	for (size_t k = 0; k < n; k++) {
		double old = a[row * n + k];
		a[row * n + k] = a[other * n + k];
		a[other * n + k] = old;
	}
	double old = b[row];
	b[row] = b[other];
	b[other] = old;
}

static void factor_column(double *a, size_t n, double *b, size_t j)
{
	for (size_t i = 0; i < n; i++) {
		size_t end = i < j ? i : j;
		double sum = 0;
		for (size_t k = 0; k < end; k++)
			sum += a[i * n + k] * a[k * n + j];
		a[i * n + j] -= sum;
	}
	size_t pivot = j;
	for (size_t i = j + 1; i < n; i++)
		if (fabs(a[i * n + j]) > fabs(a[pivot * n + j]))
			pivot = i;
	if (pivot != j)
		swap_rows(a, n, b, pivot, j);
	if (a[j * n + j] != 0)
		for (size_t i = j + 1; i < n; i++)
			a[i * n + j] /= a[j * n + j];
}

bool vp_solve_lu(double *a, size_t n, double *b)
{
	for (size_t j = 0; j < n; j++)
		factor_column(a, n, b, j);
	for (size_t j = 0; j < n; j++)
		if (a[j * n + j] == 0)
			return false;
	for (size_t k = 0; k < n; k++)
		for (size_t i = k + 1; i < n; i++)
			b[i] -= b[k] * a[i * n + k];
	for (size_t k = n; k-- > 0;) {
		b[k] /= a[k * n + k];
		for (size_t i = 0; i < k; i++)
			b[i] -= b[k] * a[i * n + k];
	}
	return true;
}
