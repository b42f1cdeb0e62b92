/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The best cut of one input, against a search that estimates nothing. */
#include "unit.h"

#include <math.h>

#include "base/macros.h"
#include "stats/m5_split.h"
#include "stats/random.h"

enum { MAX = 200 };

/* Of whole numbers, so that no sum is rounded. */
static double root_of_variance(const double *y, size_t n)
{
	int64_t sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += (int64_t)y[i];
		squares += (int64_t)y[i] * (int64_t)y[i];
	}
	return pow((double)((int64_t)n * squares - sum * sum) / (double)(n * n), 0.2);
}

static double impurity_at(const double *y, size_t n, size_t left)
{
	size_t right = n - left;

	return root_of_variance(y, n) - (double)left / (double)n * root_of_variance(y, left) -
	       (double)right / (double)n * root_of_variance(y + left, right);
}

/* The best of all cuts that leave more than `side` rows on the left and at least as many on the
 * right; -INFINITY: there is none. */
static double best_of_all(const double *x, const double *y, size_t n, size_t side)
{
	double best = -INFINITY;

	for (size_t left = side + 1; left + side < n; left++)
		if (x[left] - x[left - 1] >= 1e-10)
			best = fmax(best, impurity_at(y, n, left));
	return best;
}

/* Yields where the cut is; NAN: there is none. */
static double cut_with(const double *x, const double *y, size_t n, struct vp_split_work *work,
		       double *impurity)
{
	struct vp_split split = {.input = 7};
	bool found = vp_split_find(x, y, n, work, &split);

	assert_int_equal(split.input, 7);
	if (impurity && found)
		*impurity = split.impurity;
	return found ? split.cut : (double)NAN;
}

static double cut_of(const double *x, const double *y, size_t n)
{
	struct vp_split_work work;

	vp_split_work_init(&work, n);
	double cut = cut_with(x, y, n, &work, NULL);
	vp_split_work_deinit(&work);
	return cut;
}

/* 0, 2, 4, … and a step of y after `low` rows. */
static void make_step(double *x, double *y, size_t n, size_t low)
{
	for (size_t i = 0; i < n; i++) {
		x[i] = 2 * (double)i;
		y[i] = i < low ? 3 : 11;
	}
}

static void test_step(void **state)
{
	double x[MAX], y[MAX], impurity;
	struct vp_split_work work;

	/* A fifth of 20 rows is 4: the first cut leaves 5 rows on the left, the last as many on the
	 * right. */
	for (size_t low = 5; low <= 15; low++) {
		make_step(x, y, 20, low);
		assert_float_equal(cut_of(x, y, 20), 2 * (double)low - 1, 1e-12);
	}
	make_step(x, y, 20, 4);
	assert_float_equal(cut_of(x, y, 20), 9, 1e-12);
	make_step(x, y, 20, 17);
	assert_float_equal(cut_of(x, y, 20), 29, 1e-12);
	/* Two pure halves take all away: the fifth root of a variance of 16. */
	vp_split_work_init(&work, 20);
	make_step(x, y, 20, 10);
	assert_float_equal(cut_with(x, y, 20, &work, &impurity), 19, 1e-12);
	assert_float_equal(impurity, 1.7411011265922482, 1e-9);
	/* Two of six are pure. */
	make_step(x, y, 6, 3);
	assert_float_equal(cut_with(x, y, 6, &work, &impurity), 5, 1e-12);
	assert_float_equal(impurity, 1.7411011265922482, 1e-9);
	vp_split_work_deinit(&work);
}

/* Less than four rows have no cut; of four and five, one row is the least of a side. */
static void test_few(void **state)
{
	double x[MAX], y[MAX];

	for (size_t n = 0; n < 4; n++) {
		make_step(x, y, n, n / 2);
		assert_true(isnan(cut_of(x, y, n)));
	}
	make_step(x, y, 4, 2);
	assert_float_equal(cut_of(x, y, 4), 3, 1e-12);
	make_step(x, y, 5, 3);
	assert_float_equal(cut_of(x, y, 5), 5, 1e-12);
	make_step(x, y, 5, 1);
	assert_float_equal(cut_of(x, y, 5), 3, 1e-12);
	make_step(x, y, 9, 2);
	assert_float_equal(cut_of(x, y, 9), 3, 1e-12);
	/* From ten rows on it is two. */
	make_step(x, y, 10, 2);
	assert_float_equal(cut_of(x, y, 10), 5, 1e-12);
}

/* No cut between rows of one value, or of nearly one. */
static void test_same(void **state)
{
	double x[MAX], y[MAX];

	make_step(x, y, 20, 8);
	for (size_t i = 6; i < 10; i++)
		x[i] = 13;
	/* Not at 8: at 6 (x from 10 to 13) or 10 (13 to 20), whichever is better. */
	double cut = cut_of(x, y, 20);
	double six = impurity_at(y, 20, 6), ten = impurity_at(y, 20, 10);
	assert_float_equal(cut, six > ten ? 11.5 : 16.5, 1e-12);
	make_step(x, y, 20, 8);
	x[8] = x[7] + 0.5e-10;
	assert_true(fabs(cut_of(x, y, 20) - x[7]) > 0.5);
	x[8] = x[7] + 2e-10;
	assert_float_equal(cut_of(x, y, 20), x[7] + 1e-10, 1e-11);
	/* Exactly as far apart as it takes. */
	for (size_t i = 0; i < 20; i++)
		x[i] = (double)i - 7;
	x[8] = 1e-10;
	assert_float_equal(cut_of(x, y, 20), 0.5e-10, 1e-12);
	for (size_t i = 0; i < 20; i++)
		x[i] = 5;
	assert_true(isnan(cut_of(x, y, 20)));
}

/* An estimate of an earlier node, which was larger and had its best cut there, is not used. */
static void test_room_again(void **state)
{
	struct vp_split_work work;
	double x[MAX], y[MAX];

	vp_split_work_init(&work, 40);
	make_step(x, y, 40, 10);
	assert_float_equal(cut_with(x, y, 40, &work, NULL), 19, 1e-12);
	for (size_t i = 0; i < 40; i++) {
		x[i] = i < 20 ? 0 : 1;
		y[i] = (double)(i % 3);
	}
	assert_float_equal(cut_with(x, y, 40, &work, NULL), 0.5, 1e-12);
	vp_split_work_deinit(&work);
}

/* Values whose sums round: a variance is not below 0, and there is a cut all the same. */
static void test_rounding(void **state)
{
	double x[MAX], y[MAX];

	for (size_t n = 4; n < 60; n++) {
		for (size_t i = 0; i < n; i++) {
			x[i] = (double)i;
			y[i] = 1e8 + 0.1;
		}
		assert_false(isnan(cut_of(x, y, n)));
	}
}

/* Few values of y make many cuts nearly as good as the best. `scale` is a power of two: it rounds
 * nothing. */
static void compare(struct vp_random *random, size_t n, unsigned values, double scale,
		    struct vp_split_work *work)
{
	double x[MAX], y[MAX], scaled[MAX], impurity = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		at += (double)vp_random_below(random, 3);
		x[i] = at;
		y[i] = (double)vp_random_below(random, values);
		scaled[i] = scale * y[i];
	}
	double best = best_of_all(x, y, n, n < 5 ? 1 : n / 5), whole = root_of_variance(y, n);
	double cut = cut_with(x, scaled, n, work, &impurity);
	size_t left = 0;

	if (isnan(cut)) {
		assert_true(best == -INFINITY);
		return;
	}
	while (x[left] <= cut)
		left++;
	assert_float_equal(cut, (x[left - 1] + x[left]) / 2, 1e-12);
	if (whole == 0) /* all cuts are as good */
		return;
	impurity /= pow(scale * scale, 0.2);
	if (!(fabs(impurity - best) <= 1e-12 * whole))
		fail_msg("%zu rows of %u values: %.15g, not %.15g", n, values, impurity, best);
	assert_true(fabs(impurity_at(y, n, left) - best) <= 1e-12 * whole);
}

static void test_all_cuts(void **state)
{
	static const double scales[] = {1, 0x1p-10, 0x1p20, 0x1p-100, 0x1p100};
	struct vp_split_work work;
	struct vp_random random;

	vp_random_init(&random, 20);
	vp_split_work_init(&work, MAX);
	for (unsigned i = 0; i < 3000; i++)
		compare(&random, 4 + i % 60, 2 + i % 9, scales[i % VP_ARRAY_SIZE(scales)], &work);
	for (unsigned i = 0; i < 100; i++)
		compare(&random, MAX, 1000, 1, &work);
	vp_split_work_deinit(&work);
}

/* Of any values, in twice as many digits. */
static long double exact_root(const double *y, size_t n)
{
	long double mean = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		mean += (long double)y[i] / (long double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((long double)y[i] - mean) * ((long double)y[i] - mean);
	return powl(squares / (long double)n, 0.2L);
}

/* How many rows the best cut leaves on the left, and what it takes away. */
static size_t exact_best(const double *y, size_t n, long double *impurity)
{
	size_t best = 0;

	for (size_t left = n / 5 + 1; left + n / 5 < n; left++) {
		long double is =
		    exact_root(y, n) - (long double)left / (long double)n * exact_root(y, left) -
		    (long double)(n - left) / (long double)n * exact_root(y + left, n - left);
		if (best && is <= *impurity)
			continue;
		best = left;
		*impurity = is;
	}
	return best;
}

/* One value is moved to where two cuts are as good: next to that, estimates do not decide, however
 * large the values are. */
static void compare_near(double *y, size_t n, size_t moved, double low, struct vp_split_work *work)
{
	double x[MAX], scaled[MAX], high = low + 0.25, impurity = 0;
	long double best;

	for (size_t i = 0; i < n; i++)
		x[i] = (double)i;
	y[moved] = low;
	size_t below = exact_best(y, n, &best);
	for (int i = 0; i < 48; i++) {
		y[moved] = (low + high) / 2;
		if (exact_best(y, n, &best) == below)
			low = y[moved];
		else
			high = y[moved];
	}
	for (int i = -24; i <= 24; i++) {
		y[moved] = high * (1 + 2e-10 * i);
		exact_best(y, n, &best);
		for (size_t j = 0; j < n; j++)
			scaled[j] = 0x1p50 * y[j];
		assert_false(isnan(cut_with(x, scaled, n, work, &impurity)));
		impurity /= 0x1p20;
		if (!(fabsl((long double)impurity - best) <= 1e-13L))
			fail_msg("%.17g, not %.17Lg", impurity, best);
	}
}

static void test_near_ties(void **state)
{
	enum { ROWS = 30 };
	struct vp_split_work work;
	struct vp_random random;
	unsigned ties = 0;

	vp_random_init(&random, 3);
	vp_split_work_init(&work, ROWS);
	for (unsigned i = 0; i < 40; i++) {
		double y[ROWS];
		long double best;
		for (size_t j = 0; j < ROWS; j++)
			y[j] = (double)vp_random_below(&random, 10);
		size_t moved = vp_random_below(&random, ROWS), before = 0;
		for (double value = 0; value < 12; value += 0.25) {
			y[moved] = value;
			size_t is = exact_best(y, ROWS, &best);
			if (before && is != before) {
				compare_near(y, ROWS, moved, value - 0.25, &work);
				ties++;
			}
			before = is;
		}
	}
	assert_true(ties > 20);
	vp_split_work_deinit(&work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_step),      cmocka_unit_test(test_few),
	    cmocka_unit_test(test_same),      cmocka_unit_test(test_room_again),
	    cmocka_unit_test(test_rounding),  cmocka_unit_test(test_all_cuts),
	    cmocka_unit_test(test_near_ties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
