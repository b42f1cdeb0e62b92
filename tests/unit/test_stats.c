/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "stats/evaluate.h"
#include "stats/linear.h"
#include "stats/m5_split.h"
#include "stats/mean.h"
#include "stats/nnls.h"
#include "stats/order.h"
#include "stats/quantile.h"
#include "stats/random.h"
#include "stats/solve.h"

static void assert_near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.17g is not within %g of %.17g", value, tolerance, expected);
}

/* new java.util.Random(1): nextInt(100) three times is 85, 88, 47; nextInt(8) of seed 42 is 0. */
static void test_random(void **state)
{
	struct vp_random random;

	vp_random_init(&random, 1);
	assert_int_equal(vp_random_below(&random, 100), 85);
	assert_int_equal(vp_random_below(&random, 100), 88);
	assert_int_equal(vp_random_below(&random, 100), 47);
	vp_random_init(&random, 42);
	assert_int_equal(vp_random_below(&random, 8), 5);
}

/* However often, all rows are there; and each comes to be at each place, of as few as two. */
static void test_shuffle_keeps_all(void **state)
{
	enum { N = 8 };

	for (uint32_t n = 1; n <= N; n++) {
		uint32_t at[N] = {0};
		struct vp_random random;
		vp_random_init(&random, n);
		for (int again = 0; again < 300; again++) {
			VP_AUTO_FREE uint32_t *rows = vp_alloc(n * sizeof(*rows));
			uint32_t seen = 0;
			for (uint32_t i = 0; i < n; i++)
				rows[i] = i;
			vp_random_shuffle(&random, rows, n);
			for (uint32_t i = 0; i < n; i++) {
				seen |= 1U << rows[i];
				at[i] |= 1U << rows[i];
			}
			assert_int_equal(seen, (1U << n) - 1);
		}
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(at[i], (1U << n) - 1);
	}
}

/*
 * By hand, 2a 2b 2c 1d: the outer ones change places, 2b is the pivot; it changes places with 2c
 * for the partition and back after it.
 */
static void test_order_of_equal_values(void **state)
{
	struct vp_keyed items[] = {{2, 0}, {2, 1}, {2, 2}, {1, 3}};

	vp_order_sort(items, 4);
	assert_int_equal(items[0].row, 3);
	assert_int_equal(items[1].row, 1);
	assert_int_equal(items[2].row, 2);
	assert_int_equal(items[3].row, 0);
}

static void test_order_sorts(void **state)
{
	struct vp_keyed items[1000];
	struct vp_random random;

	vp_random_init(&random, 3);
	for (uint32_t i = 0; i < 1000; i++)
		items[i] = (struct vp_keyed){vp_random_below(&random, 50), i};
	vp_order_sort(items, 1000);
	for (size_t i = 1; i < 1000; i++)
		assert_true(items[i - 1].value <= items[i].value);
}

static void swap_items(struct vp_keyed *a, struct vp_keyed *b)
{
	struct vp_keyed old = *a;
	*a = *b;
	*b = old;
}

static void swap_if_greater(struct vp_keyed *a, struct vp_keyed *b)
{
	if (a->value > b->value)
		swap_items(a, b);
}

/* weka.core.Utils.quickSort(), item by item, of those from `left` to `right`. */
static void sort_plainly(struct vp_keyed *items, ptrdiff_t left, ptrdiff_t right)
{
	ptrdiff_t middle = (left + right) / 2, up = left, down = right - 1;

	if (right <= left)
		return;
	if (right - left > 1) {
		swap_if_greater(&items[left], &items[middle]);
		swap_if_greater(&items[left], &items[right]);
	}
	swap_if_greater(&items[right - left > 1 ? middle : left], &items[right]);
	if (right - left < 3)
		return;
	swap_items(&items[middle], &items[right - 1]);
	for (double pivot = items[right - 1].value;;) {
		while (items[++up].value < pivot)
			;
		while (items[--down].value > pivot)
			;
		if (up >= down)
			break;
		swap_items(&items[up], &items[down]);
	}
	swap_items(&items[up], &items[right - 1]);
	sort_plainly(items, left, up - 1);
	sort_plainly(items, up + 1, right);
}

/* Whatever is repeated how often, equal values end up where WEKA's quicksort has them. */
static void test_order_of_many(void **state)
{
	enum { MAX = 5000 };
	static struct vp_keyed items[MAX], expected[MAX];
	struct vp_random random;

	vp_random_init(&random, 5);
	for (uint32_t n = 1; n < MAX; n += 1 + n / 3)
		for (uint32_t values = 1; values <= 2 * n; values *= 3) {
			for (uint32_t i = 0; i < n; i++) {
				double value = vp_random_below(&random, values);
				items[i] = (struct vp_keyed){i % 7 ? value : i, i};
			}
			memcpy(expected, items, sizeof(items));
			vp_order_sort(items, n);
			sort_plainly(expected, 0, (ptrdiff_t)n - 1);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(items[i].row, expected[i].row);
		}
}

static void test_solve(void **state)
{
	double a[] = {0, 2, 1, 1}, b[] = {4, 3}, singular[] = {1, 2, 2, 4}, c[] = {1, 2};

	assert_true(vp_solve_lu(a, 2, b));
	assert_near(b[0], 1, 1e-15);
	assert_near(b[1], 2, 1e-15);
	assert_false(vp_solve_lu(singular, 2, c));
}

/* Free, the second coefficient would be -1; without it the first is 12/4. */
static void test_nnls(void **state)
{
	const double products[] = {4, 2, 2, 3}, with_target[] = {12, 4};
	double b[2];

	vp_nnls(products, with_target, 2, b);
	assert_near(b[0], 3, 1e-12);
	assert_true(b[1] == 0);
	const double other[] = {10, 7};
	vp_nnls(products, other, 2, b);
	assert_near(b[0], 2, 1e-12);
	assert_near(b[1], 1, 1e-12);
}

/* At the optimum nothing falls in any direction that is allowed, whatever left and came back. */
static void test_nnls_optimum(void **state)
{
	enum { N = 5, ROWS = 7 };
	struct vp_random random;
	unsigned zeros = 0;

	vp_random_init(&random, 9);
	for (int again = 0; again < 500; again++) {
		double a[ROWS][N], y[ROWS], products[N * N] = {0}, with_target[N] = {0}, b[N];
		for (int row = 0; row < ROWS; row++) {
			for (int i = 0; i < N; i++)
				a[row][i] = (double)vp_random_below(&random, 200) - 60;
			y[row] = (double)vp_random_below(&random, 200) - 100;
			for (int i = 0; i < N; i++) {
				for (int j = 0; j <= i; j++)
					products[i * N + j] += a[row][i] * a[row][j];
				with_target[i] += a[row][i] * y[row];
			}
		}
		for (int i = 0; i < N; i++)
			for (int j = i + 1; j < N; j++)
				products[i * N + j] = products[j * N + i];
		vp_nnls(products, with_target, N, b);
		for (int i = 0; i < N; i++) {
			double slope = with_target[i];
			for (int j = 0; j < N; j++)
				slope -= products[i * N + j] * b[j];
			assert_true(b[i] >= 0 && slope <= 1e-6);
			assert_true(b[i] == 0 || slope >= -1e-6);
			zeros += b[i] == 0;
		}
	}
	assert_in_range(zeros, 500, 2000); /* both kinds are frequent */
}

/* A share of a whole; a whole of less than half of the largest is no observation. */
static void test_means(void **state)
{
	struct vp_observation made[] = {{1, 10}, {3, 10}, {2, 10}, {4, 5}, {4, 4}};
	const vp_observations all = {.at = made, .count = 5}, few = {.at = made, .count = 1};
	struct vp_mean mean = vp_mean_of(&all, 100);

	assert_near(mean.value, 100 * 14.0 / 39, 1e-12);
	assert_int_equal(mean.count, 4);
	double off[] = {10 - mean.value, 30 - mean.value, 20 - mean.value, 80 - mean.value};
	double squares = 0;
	for (size_t i = 0; i < 4; i++)
		squares += off[i] * off[i];
	assert_near(mean.error_squared, squares / 3 / 4, 1e-9);
	assert_near(vp_mean_margin(&mean), 3.182 * sqrt(squares / 12), 1e-9);
	mean = vp_mean_of(&few, 1);
	assert_true(mean.value == 0.1 && mean.count == 1 && mean.error_squared == 0);
	mean = vp_mean_of(&(vp_observations){0}, 1);
	assert_true(mean.value == 0 && mean.count == 0);
	assert_near(vp_student(0), 12.706, 0);
	assert_near(vp_student(1.9), 12.706, 0);
	assert_near(vp_student(20), 2.086, 0);
	/* From tables: 2.0423 of 30, 1.9840 of 100. */
	assert_near(vp_student(30), 2.0423, 0.002);
	assert_near(vp_student(100), 1.9840, 0.002);
}

static void test_quantiles(void **state)
{
	double values[] = {4, 1, 3, 2, 100};

	assert_near(vp_robust_deviation(values, 5), 1.4826022185056018, 1e-15);
	assert_near(vp_quantile(values, 5, 0), 1, 0);
	assert_near(vp_quantile(values, 5, 0.5), 3, 0);
	assert_near(vp_quantile(values, 5, 0.9), 61.6, 1e-12);
	assert_near(vp_quantile(values, 1, 0.9), 1, 0);
}

/* y = 1 + 2 x over x = 0 … 3 with residuals 1, -1, -1, 1: slope 2, standard error sqrt(2/5). */
static void test_least_squares(void **state)
{
	double a[] = {-1.5, -0.5, 0.5, 1.5}, y[] = {-2, -2, 0, 4};
	struct vp_lstsq fit;

	vp_lstsq_solve(&fit, a, 4, 1, y, 1e-12);
	assert_int_equal(fit.rank, 1);
	assert_near(fit.b[0], 2, 1e-14);
	assert_near(fit.residual, 4, 1e-13);
	assert_near(fit.spread[0], 0.2, 1e-15);
	const double row = 1.5;
	assert_near(vp_lstsq_leverage(&fit, &row), 2.25 / 5, 1e-15);
	vp_lstsq_deinit(&fit);
}

/* Two equal columns share a coefficient of 4; a third is 1, whatever they do. */
static void test_rank_deficient(void **state)
{
	double a[] = {1, -1, 1, -1, 1, -1, 1, -1, 1, 1, -1, -1}, y[] = {5, -3, 3, -5};
	struct vp_lstsq fit;

	vp_lstsq_solve(&fit, a, 4, 3, y, 1e-10);
	assert_int_equal(fit.rank, 2);
	assert_near(fit.b[0], 2, 1e-14);
	assert_near(fit.b[1], 2, 1e-14);
	assert_near(fit.b[2], 1, 1e-14);
	assert_true(fit.unclear[0] && fit.unclear[1] && !fit.unclear[2]);
	assert_true(isnan(fit.spread[0]));
	assert_near(fit.spread[2], 0.25, 1e-15);
	vp_lstsq_deinit(&fit);
}

/* The only cut that leaves a fifth of ten rows and one more on each side, at the step. */
static void test_split(void **state)
{
	const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, y[] = {0, 0, 0, 0, 9, 9, 9, 9, 9, 9};
	struct vp_split_work work;
	struct vp_split split;

	vp_split_work_init(&work, 10);
	assert_true(vp_split_find(x, y, 10, &work, &split));
	assert_near(split.cut, 4.5, 0);
	/* The fifth root of 81 * 0.24. */
	assert_near(split.impurity, pow(81 * 0.24, 0.2), 1e-12);
	assert_false(vp_split_find(x, y, 3, &work, &split));
	const double same[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	assert_false(vp_split_find(same, y, 10, &work, &split));
	vp_split_work_deinit(&work);
}

static void test_score(void **state)
{
	struct vp_score score = {0};

	vp_score_add(&score, 1, 2, 2);
	vp_score_add(&score, 3, 3, 2);
	vp_score_add(&score, NAN, 3, 2);
	assert_near(vp_score_mae(&score), 0.5, 0);
	assert_near(vp_score_rmse(&score), sqrt(0.5), 1e-15);
	assert_near(vp_score_rae(&score), 50, 1e-12);
	assert_near(vp_score_rrse(&score), 100 * sqrt(0.5), 1e-12);
	assert_near(vp_score_correlation(&score), 1, 1e-12);
	assert_near(score.ignored, 1, 0);
}

/* A data set of `k` columns of random numbers and a target made by `make`. */
static void make_data(struct vp_data *data, size_t rows, size_t k,
		      double (*make)(const double *x, struct vp_random *random))
{
	struct vp_random random;

	*data = (struct vp_data){.name = vp_strdup("made"), .rows = rows, .target = k};
	for (size_t j = 0; j <= k; j++) {
		struct vp_column *column =
		    vp_data_column_add(data, vp_format("x%zu", j), VP_DATA_NUMERIC);
		column->values = vp_alloc(rows * sizeof(double));
	}
	vp_random_init(&random, 7);
	for (size_t i = 0; i < rows; i++) {
		double x[k];
		for (size_t j = 0; j < k; j++)
			x[j] = data->columns.at[j].values[i] =
			    vp_random_below(&random, 1000000) * 1e-5;
		data->columns.at[k].values[i] = make(x, &random);
	}
}

static double plane(const double *x, struct vp_random *random)
{
	return 5 + 2 * x[0] - 3 * x[1] + 0.5 * x[2];
}

static void test_linear(void **state)
{
	struct vp_linear_options options = {0};
	struct vp_data data;
	size_t n;
	double sum;

	make_data(&data, 200, 3, plane);
	uint32_t *rows = vp_data_known_rows(&data, &n);
	struct vp_linear *model = vp_linear_build(&data, rows, n, &options);
	assert_int_equal(model->rank, 3);
	assert_near(model->terms[0].coefficient, 2, 1e-12);
	assert_near(model->terms[1].coefficient, -3, 1e-12);
	assert_near(model->terms[2].coefficient, 0.5, 1e-12);
	assert_near(model->constant, 5, 1e-11);
	sum = model->constant_contribution;
	for (size_t j = 0; j < 3; j++) {
		sum += model->terms[j].contribution;
		assert_true(model->terms[j].inflation < 1.2);
	}
	assert_near(sum, 100, 1e-10);
	vp_linear_free(model);
	options.nonneg = true;
	model = vp_linear_build(&data, rows, n, &options);
	assert_true(model->terms[1].coefficient == 0);
	assert_true(model->terms[0].coefficient > 1);
	assert_true(isnan(model->terms[0].error) && isnan(model->constant_error));
	vp_linear_free(model);
	free(rows);
	vp_data_deinit(&data);
}

/* A data set of those columns, by column, of which the last is the target. */
static void data_of(struct vp_data *data, size_t rows, size_t k, const double *columns)
{
	*data = (struct vp_data){.name = vp_strdup("given"), .rows = rows, .target = k};
	for (size_t j = 0; j <= k; j++) {
		struct vp_column *column =
		    vp_data_column_add(data, vp_format("x%zu", j), VP_DATA_NUMERIC);
		column->values = vp_alloc(rows * sizeof(double));
		memcpy(column->values, columns + j * rows, rows * sizeof(double));
	}
}

static struct vp_linear *fit_all(const struct vp_data *data)
{
	static const struct vp_linear_options options;
	size_t n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);

	return vp_linear_build(data, rows, n, &options);
}

static void assert_close(double value, double expected)
{
	assert_near(value, expected, fabs(expected) * 1e-9);
}

/* NIST's Statistical Reference Datasets, "Norris" (simple regression), with the certified values.
 */
static void test_norris(void **state)
{
	enum { N = 36 };
	static const double columns[2 * N] = {
	    0.2, 337.4, 118.2, 884.6, 10.1,  226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4,
	    0.6, 775.5, 666.9, 338.0, 447.5, 11.6,  556.0, 228.1, 995.8, 887.6, 120.2, 0.3,
	    0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1,  118.3, 229.2, 669.1, 448.9, 0.5,
	    0.1, 338.8, 118.1, 888.0, 9.2,   228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3,
	    0.1, 778.1, 668.8, 339.3, 448.9, 10.8,  557.7, 228.3, 998.0, 888.8, 119.6, 0.3,
	    0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2,  117.6, 228.9, 668.4, 449.2, 0.2};
	struct vp_data data;
	double mean = 0, squares = 0;

	data_of(&data, N, 1, columns);
	struct vp_linear *model = fit_all(&data);
	assert_close(model->constant, -0.262323073774029);
	assert_close(model->constant_error, 0.232818234301152);
	assert_close(model->terms[0].coefficient, 1.00211681802045);
	assert_close(model->terms[0].error, 0.429796848199937e-03);
	assert_close(model->residual, 0.884796396144373);
	assert_close(model->terms[0].inflation, 1);
	/* The textbook's leverage. */
	for (size_t i = 0; i < N; i++)
		mean += columns[i] / N;
	for (size_t i = 0; i < N; i++)
		squares += (columns[i] - mean) * (columns[i] - mean);
	assert_close(model->terms[0].mean, mean);
	assert_close(model->terms[0].sd, sqrt(squares / (N - 1)));
	for (size_t i = 0; i < N; i++)
		assert_close(vp_linear_leverage(model, &data, i),
			     1.0 / N + (columns[i] - mean) * (columns[i] - mean) / squares);
	vp_linear_free(model);
	vp_data_deinit(&data);
}

/* "Longley" (multiple regression, of predictors that nearly depend on each other); the variance
 * inflation is that of exact fractions. */
static void test_longley(void **state)
{
	enum { N = 16, K = 6 };
	static const double columns[(K + 1) * N] = {
	    83.0,   88.5,   88.2,   89.5,   96.2,   98.1,   99.0,   100.0,  101.2,  104.6,  108.4,
	    110.8,  112.6,  114.2,  115.7,  116.9,  234289, 259426, 258054, 284599, 328975, 346999,
	    365385, 363112, 397469, 419180, 442769, 444546, 482704, 502601, 518173, 554894, 2356,
	    2325,   3682,   3351,   2099,   1932,   1870,   3578,   2904,   2822,   2936,   4681,
	    3813,   3931,   4806,   4007,   1590,   1456,   1616,   1650,   3099,   3594,   3547,
	    3350,   3048,   2857,   2798,   2637,   2552,   2514,   2572,   2827,   107608, 108632,
	    109773, 110929, 112075, 113270, 115094, 116219, 117388, 118734, 120445, 121950, 123366,
	    125368, 127852, 130081, 1947,   1948,   1949,   1950,   1951,   1952,   1953,   1954,
	    1955,   1956,   1957,   1958,   1959,   1960,   1961,   1962,   60323,  61122,  60171,
	    61187,  63221,  63639,  64989,  63761,  66019,  67857,  68169,  66513,  68655,  69564,
	    69331,  70551};
	static const struct {
		double coefficient, error, inflation;
	} certified[K] = {
	    {15.0618722713733, 84.9149257747669, 135.53243828000322},
	    {-0.358191792925910e-01, 0.334910077722432e-01, 1788.5134827181773},
	    {-2.02022980381683, 0.488399681651699, 33.61889059604987},
	    {-1.03322686717359, 0.214274163161675, 3.588930193445543},
	    {-0.511041056535807e-01, 0.226073200069370, 399.1510223126395},
	    {1829.15146461355, 455.478499142212, 758.9805974068944},
	};
	struct vp_data data;

	data_of(&data, N, K, columns);
	struct vp_linear *model = fit_all(&data);
	assert_int_equal(model->rank, K);
	for (size_t j = 0; j < K; j++) {
		assert_close(model->terms[j].coefficient, certified[j].coefficient);
		assert_close(model->terms[j].error, certified[j].error);
		assert_close(model->terms[j].inflation, certified[j].inflation);
		assert_false(model->terms[j].unclear);
	}
	assert_close(model->constant, -3482258.63459582);
	assert_close(model->constant_error, 890420.383607373);
	assert_close(model->residual, 304.854073561965);
	vp_linear_free(model);
	vp_data_deinit(&data);
}

/* Eight rows of three columns that are orthogonal to each other, with mean 0. */
static double orthogonal(size_t column, size_t row)
{
	return row & (size_t)1 << column ? 1 : -1;
}

/* Predictors that are sums of three such columns, by these parts; how many groups they are. */
static size_t groups_of(size_t k, const double parts[][3], uint32_t *groups)
{
	enum { N = 8, MAX = 4 };
	double columns[(MAX + 1) * N] = {0};
	struct vp_data data;

	for (size_t j = 0; j < k; j++)
		for (size_t i = 0; i < N; i++)
			for (size_t part = 0; part < 3; part++)
				columns[j * N + i] += parts[j][part] * orthogonal(part, i);
	for (size_t i = 0; i < N; i++)
		columns[k * N + i] = (double)(i * i);
	data_of(&data, N, k, columns);
	struct vp_linear *model = fit_all(&data);
	size_t count = vp_linear_group(model, &data);
	for (size_t j = 0; j < k; j++)
		groups[j] = model->terms[j].group;
	vp_linear_free(model);
	vp_data_deinit(&data);
	return count;
}

/* The second column of a pair that correlates so much with the first. */
#define CORRELATES(r)                                                                              \
	{                                                                                          \
		(r), sqrt(1 - (r) * (r)), 0                                                        \
	}

static void test_groups(void **state)
{
	uint32_t groups[4];
	const double alike[][3] = {{1, 0, 0}, CORRELATES(0.91)};
	const double opposite[][3] = {{1, 0, 0}, CORRELATES(-0.91)};
	const double different[][3] = {{1, 0, 0}, CORRELATES(0.89)};
	/* The first and the last correlate by 0.66 only. */
	const double chain[][3] = {{1, 0, 0}, {0, 0, 5}, CORRELATES(0.91), {0.66, 0.75127, 0}};
	/* The last is of both others, and more of the second: its variance is inflated by 10.8. */
	const double inflated[][3] = {{1, 0, 0}, {0, 1, 0}, {0.6, 0.74, 0.303974}};
	/* The same, by 9.4. */
	const double less[][3] = {{1, 0, 0}, {0, 1, 0}, {0.6, 0.73, 0.327}};

	assert_int_equal(groups_of(2, alike, groups), 1);
	assert_int_equal(groups[1], 0);
	assert_int_equal(groups_of(2, opposite, groups), 1);
	assert_int_equal(groups_of(2, different, groups), 2);
	assert_int_equal(groups[0], 0);
	assert_int_equal(groups[1], 1);
	assert_int_equal(groups_of(4, chain, groups), 2);
	assert_int_equal(groups[0], 0);
	assert_int_equal(groups[1], 1);
	assert_int_equal(groups[2], 0);
	assert_int_equal(groups[3], 0);
	assert_int_equal(groups_of(3, inflated, groups), 2);
	assert_int_equal(groups[0], 0);
	assert_int_equal(groups[1], 1);
	assert_int_equal(groups[2], 1);
	assert_int_equal(groups_of(3, less, groups), 3);
	assert_int_equal(groups[2], 2);
}

/* A column on another scale that is the sum of two, and one that is nearly another. */
static double add_dependent(const double *x, struct vp_random *random)
{
	return 1 + x[0] + x[1];
}

static void test_dependent_columns(void **state)
{
	struct vp_linear_options options = {0};
	struct vp_data data;
	size_t n;

	make_data(&data, 200, 4, add_dependent);
	for (size_t i = 0; i < data.rows; i++)
		data.columns.at[2].values[i] =
		    1e9 * (data.columns.at[0].values[i] + data.columns.at[1].values[i]);
	uint32_t *rows = vp_data_known_rows(&data, &n);
	struct vp_linear *model = vp_linear_build(&data, rows, n, &options);
	assert_int_equal(model->rank, 3);
	assert_true(model->terms[0].unclear && model->terms[1].unclear && model->terms[2].unclear);
	assert_false(model->terms[3].unclear);
	assert_near(model->terms[0].coefficient + 1e9 * model->terms[2].coefficient, 1, 1e-10);
	assert_near(model->terms[3].coefficient, 0, 1e-10);
	assert_int_equal(vp_linear_group(model, &data), 2);
	assert_int_equal(model->terms[0].group, model->terms[2].group);
	vp_linear_free(model);
	free(rows);
	vp_data_deinit(&data);
}

/* Each group's rows are predicted by what the others' say: here that is off by what the target of
 * one group has more than that of the other. A row whose target is not known teaches nothing. */
static void test_leave_group_out(void **state)
{
	enum { N = 11 };
	static const uint32_t groups[N] = {0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0};
	const struct vp_linear_options options = {0};
	const struct vp_learner learner = vp_linear_learner(&options);
	struct vp_score scores[2] = {{0}, {0}};
	double columns[2 * N], predicted[N];
	struct vp_data data;

	for (size_t i = 0; i < N; i++) {
		columns[i] = (double)(i * i);
		columns[N + i] = 3 * columns[i] + 100 * groups[i];
	}
	columns[N + 4] = NAN;
	data_of(&data, N, 1, columns);
	vp_leave_group_out(&learner, &data, groups, 2, scores, predicted);
	for (size_t i = 0; i < N; i++)
		assert_near(predicted[i], 3 * columns[i] + 100 * (1 - (double)groups[i]), 1e-9);
	assert_near(scores[0].n, 5, 0);
	assert_near(scores[1].n, 5, 0);
	for (uint32_t group = 0; group < 2; group++) {
		/* Against the mean of those that were learnt from, which are the other group's. */
		double mean = 0, off = 0;
		for (size_t i = 0; i < N; i++)
			mean += groups[i] != group && i != 4 ? columns[N + i] / 5 : 0;
		for (size_t i = 0; i < N; i++)
			off += groups[i] == group && i != 4 ? fabs(columns[N + i] - mean) : 0;
		assert_near(vp_score_mae(&scores[group]), 100, 1e-9);
		assert_near(scores[group].mean_absolute_error, off, 1e-9);
		assert_near(vp_score_rae(&scores[group]), 100 * 100 / (off / 5), 1e-9);
	}
	vp_data_deinit(&data);
}

/* Labels in the order of the target's means; one that no row has is where the mean of all is. */
static void test_labels_by_mean(void **state)
{
	static const char *const labels[] = {"high", "none", "low", "middle"};
	static const uint32_t expected[] = {3, 2, 0, 1};
	static const double columns[] = {0, 2, 0, 3, 2, /* target */ 10, 0, 12, 4, 1};
	struct vp_inputs inputs = {0};
	struct vp_data data;
	size_t n;

	data_of(&data, 5, 1, columns);
	struct vp_column *column = &data.columns.at[0];
	column->type = VP_DATA_NOMINAL;
	column->labels = (struct vp_labels){vp_realloc_array(NULL, 4, sizeof(char *)), 4, 4};
	for (size_t i = 0; i < 4; i++)
		column->labels.at[i] = vp_strdup(labels[i]);
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(&data, &n);
	vp_inputs_learn(&inputs, &data, rows, n);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(inputs.ranks[0][i], expected[i]);
	vp_inputs_deinit(&inputs);
	vp_data_deinit(&data);
}

/* A value that is missing is the mean of those known, or the most frequent label; rows that are not
 * learned from do not count. */
static void test_missing_values(void **state)
{
	static const uint32_t learned[] = {0, 1, 2, 4, 5};
	double columns[3 * 6] = {-1,  5, NAN, 100, 8, 4,  /* numeric */
				 NAN, 1, 0,   0,   1, 0,  /* nominal: as frequent */
				 1,   2, 3,   4,   5, 6}; /* target */
	struct vp_inputs inputs = {0};
	struct vp_data data;

	data_of(&data, 6, 2, columns);
	struct vp_column *column = &data.columns.at[1];
	column->type = VP_DATA_NOMINAL;
	column->labels = (struct vp_labels){vp_realloc_array(NULL, 2, sizeof(char *)), 2, 2};
	column->labels.at[0] = vp_strdup("a");
	column->labels.at[1] = vp_strdup("b");
	vp_inputs_learn(&inputs, &data, learned, VP_ARRAY_SIZE(learned));
	assert_near(inputs.replacement[0], 4, 1e-12);
	assert_near(inputs.replacement[1], 0, 0);
	assert_near(vp_input_value(&inputs, 0, &data, 2), 4, 1e-12);
	assert_near(vp_input_value(&inputs, 0, &data, 3), 100, 0);
	vp_inputs_deinit(&inputs);
	column->values[5] = 1; /* the second label is more frequent now */
	vp_inputs_learn(&inputs, &data, learned, VP_ARRAY_SIZE(learned));
	assert_near(inputs.replacement[1], 1, 0);
	vp_inputs_deinit(&inputs);
	vp_data_deinit(&data);
}

static double step(const double *x, struct vp_random *random)
{
	return x[0] <= 5 ? 3 * x[1] : 100 - 2 * x[2];
}

static void test_tree(void **state)
{
	struct vp_m5_options options = {.minimum = 4, .unsmoothed = true};
	struct vp_learner learner = vp_m5_learner(&options);
	struct vp_score score = {0};
	struct vp_data data;
	size_t n;

	make_data(&data, 400, 3, step);
	uint32_t *rows = vp_data_known_rows(&data, &n);
	struct vp_m5 *tree = vp_m5_build(&data, rows, n, &options);
	assert_int_equal(tree->root->input, 0);
	assert_near(tree->root->cut, 5, 0.1);
	assert_near(tree->root->left->model.coefficients[1], 3, 1e-3);
	vp_cross_validate(&learner, &data, 10, &score, NULL);
	assert_near(score.n, 400, 0);
	assert_true(vp_score_correlation(&score) > 0.98);
	vp_m5_free(tree);
	options.nonneg = true;
	tree = vp_m5_build(&data, rows, n, &options);
	for (const struct vp_m5_node *node = tree->root; node; node = node->right)
		for (size_t i = 0; i < tree->inputs.at.count; i++)
			assert_true(node->model.coefficients[i] >= 0);
	vp_m5_free(tree);
	free(rows);
	vp_data_deinit(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_shuffle_keeps_all),
	    cmocka_unit_test(test_order_of_equal_values),
	    cmocka_unit_test(test_order_sorts),
	    cmocka_unit_test(test_order_of_many),
	    cmocka_unit_test(test_solve),
	    cmocka_unit_test(test_nnls),
	    cmocka_unit_test(test_nnls_optimum),
	    cmocka_unit_test(test_means),
	    cmocka_unit_test(test_quantiles),
	    cmocka_unit_test(test_least_squares),
	    cmocka_unit_test(test_rank_deficient),
	    cmocka_unit_test(test_split),
	    cmocka_unit_test(test_score),
	    cmocka_unit_test(test_linear),
	    cmocka_unit_test(test_norris),
	    cmocka_unit_test(test_longley),
	    cmocka_unit_test(test_groups),
	    cmocka_unit_test(test_leave_group_out),
	    cmocka_unit_test(test_labels_by_mean),
	    cmocka_unit_test(test_missing_values),
	    cmocka_unit_test(test_dependent_columns),
	    cmocka_unit_test(test_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
