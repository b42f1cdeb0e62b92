/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "stats/evaluate.h"
#include "stats/linear.h"
#include "stats/m5_split.h"
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

static void test_shuffle_keeps_all(void **state)
{
	uint32_t rows[] = {0, 1, 2, 3, 4, 5, 6, 7}, seen = 0;
	struct vp_random random;

	vp_random_init(&random, 1);
	vp_random_shuffle(&random, rows, 8);
	for (size_t i = 0; i < 8; i++)
		seen |= 1U << rows[i];
	assert_int_equal(seen, 0xff);
	assert_int_not_equal(rows[7], 7);
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
	enum { MOST = 5000 };
	static struct vp_keyed items[MOST], expected[MOST];
	struct vp_random random;

	vp_random_init(&random, 5);
	for (uint32_t n = 1; n < MOST; n += 1 + n / 3)
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
		    vp_data_column_add(data, vp_format("x%zu", j), VP_COLUMN_NUMERIC);
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
	vp_linear_free(model);
	free(rows);
	vp_data_deinit(&data);
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
	    cmocka_unit_test(test_quantiles),
	    cmocka_unit_test(test_least_squares),
	    cmocka_unit_test(test_rank_deficient),
	    cmocka_unit_test(test_split),
	    cmocka_unit_test(test_score),
	    cmocka_unit_test(test_linear),
	    cmocka_unit_test(test_dependent_columns),
	    cmocka_unit_test(test_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
