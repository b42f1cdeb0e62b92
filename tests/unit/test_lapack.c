/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Least squares against LAPACK's dgelsy. */
#include "unit.h"

#include <lapacke.h>
#include <math.h>

#include "stats/lstsq.h"
#include "stats/random.h"

enum { ROWS = 300, COLUMNS = 12 };

static double next(struct vp_random *random)
{
	return vp_random_below(random, 2000001) * 1e-6 - 1;
}

/* Solves the same by both, the last `dependent` columns being sums of others. */
static void compare(size_t dependent, unsigned seed)
{
	double a[ROWS * COLUMNS], copy[ROWS * COLUMNS], y[ROWS], right[ROWS];
	lapack_int pivot[COLUMNS] = {0}, rank;
	struct vp_random random;
	struct vp_lstsq fit;

	vp_random_init(&random, seed);
	for (size_t j = 0; j < COLUMNS; j++)
		for (size_t i = 0; i < ROWS; i++)
			a[j * ROWS + i] = j < COLUMNS - dependent
					      ? next(&random)
					      : a[i] + 2 * a[(j - 1) * ROWS + i];
	for (size_t i = 0; i < ROWS; i++)
		y[i] = next(&random) + 3 * a[i];
	memcpy(copy, a, sizeof(a));
	memcpy(right, y, sizeof(y));
	assert_int_equal(LAPACKE_dgelsy(LAPACK_COL_MAJOR, ROWS, COLUMNS, 1, copy, ROWS, right, ROWS,
					pivot, 1e-10, &rank),
			 0);
	vp_lstsq_solve(&fit, a, ROWS, COLUMNS, y, 1e-10);
	assert_int_equal(fit.rank, rank);
	assert_int_equal(fit.rank, COLUMNS - dependent);
	for (size_t j = 0; j < COLUMNS; j++)
		if (!(fabs(fit.b[j] - right[j]) < 1e-11))
			fail_msg("coefficient %zu: %.17g, LAPACK has %.17g", j, fit.b[j], right[j]);
	vp_lstsq_deinit(&fit);
}

static void test_full_rank(void **state)
{
	for (unsigned seed = 1; seed < 20; seed++)
		compare(0, seed);
}

static void test_rank_deficient(void **state)
{
	for (unsigned seed = 1; seed < 20; seed++)
		compare(1 + seed % 3, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_full_rank),
	    cmocka_unit_test(test_rank_deficient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
