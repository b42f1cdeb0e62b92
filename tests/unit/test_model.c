/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether models can be believed, groups of predictors, and model trees in files. */
#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "analyze/model/model_check.h"
#include "analyze/model/model_compare.h"
#include "analyze/model/model_groups.h"
#include "base/file.h"
#include "stats/quantile.h"
#include "stats/random.h"
#include "table/model_file.h"

#define FILE_NAME "test_model.file"

enum { ROWS = 40, GROUPS = 3 };

static void assert_near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.17g is not within %g of %.17g", value, tolerance, expected);
}

static double *add_numbers(struct vp_data *data, const char *name)
{
	struct vp_column *column = vp_data_column_add(data, vp_strdup(name), VP_DATA_NUMERIC);

	column->values = vp_alloc(data->rows * sizeof(double));
	return column->values;
}

static double *add_words(struct vp_data *data, const char *name, const char *const *words, size_t n)
{
	struct vp_column *column = vp_data_column_add(data, vp_strdup(name), VP_DATA_NOMINAL);

	for (size_t i = 0; i < n; i++)
		vp_vec_push(&column->labels, vp_strdup(words[i]));
	column->values = vp_alloc(data->rows * sizeof(double));
	return column->values;
}

static const char *const workloads[GROUPS] = {"make", "sort", "web"};

/* y = 3 + 2 x, nearly; the last but one row's y is far off, the first one's x; the last has no y.
 */
static struct vp_data made_data(void)
{
	struct vp_data data = {.rows = ROWS, .target = 2};
	double *words = add_words(&data, "workload", workloads, GROUPS);
	double *x = add_numbers(&data, "x"), *y = add_numbers(&data, "y");
	struct vp_random random;

	vp_random_init(&random, 5);
	for (size_t i = 0; i < ROWS; i++) {
		words[i] = (double)(i % GROUPS);
		x[i] = i ? (double)vp_random_below(&random, 100) : 400;
		y[i] = 3 + 2 * x[i] + (double)vp_random_below(&random, 100) / 100;
	}
	words[5] = NAN;
	y[ROWS - 2] += 500;
	y[ROWS - 1] = NAN;
	return data;
}

/* By models that have not seen the row. */
static void test_check_rows(void **state)
{
	const struct vp_linear_options linear = {0};
	const struct vp_m5_options tree = {.minimum = 4};
	struct vp_data data = made_data();
	struct vp_model_check check;
	double residuals[ROWS - 1], predicted[ROWS];
	struct vp_score score = {0};
	size_t unexplained = 0;

	expect_no_error(vp_model_check_init(&check, &data, "workload", 4, &linear, &tree));
	assert_int_equal(data.columns.count, 2);
	assert_int_equal(data.target, 1);
	assert_int_equal(check.rows.count, ROWS - 1);
	struct vp_learner learner = vp_linear_learner(&linear);
	vp_cross_validate(&learner, &data, 4, &score, predicted);
	assert_near(check.score[VP_CHECK_LINEAR].squared_error, score.squared_error, 1e-6);
	assert_near(check.high_leverage, 2.0 * 2 / (ROWS - 1), 1e-15);
	for (size_t i = 0; i < ROWS - 1; i++) {
		const struct vp_checked_row *row = &check.rows.at[i];
		assert_int_equal(row->row, i);
		assert_near(row->actual, data.columns.at[1].values[i], 0);
		assert_near(row->predicted[VP_CHECK_LINEAR], predicted[i], 1e-9);
		residuals[i] = row->actual - row->predicted[VP_CHECK_LINEAR];
		assert_int_equal(row->influential, i == 0);
		assert_int_equal(row->unexplained, fabs(row->distance[VP_CHECK_LINEAR]) > 3 &&
						       fabs(row->distance[VP_CHECK_TREE]) > 3);
		unexplained += row->unexplained;
	}
	assert_int_equal(check.influential, 1);
	assert_int_equal(check.unexplained, unexplained);
	assert_true(check.rows.at[ROWS - 2].unexplained && !check.rows.at[7].unexplained);
	double off = residuals[7];
	double deviation = vp_robust_deviation(residuals, ROWS - 1);
	assert_near(check.deviation[VP_CHECK_LINEAR], deviation, 1e-9);
	assert_near(check.rows.at[7].distance[VP_CHECK_LINEAR], off / deviation, 1e-6);
	vp_quantile_sort(residuals, ROWS - 1);
	assert_near(check.quantiles[VP_CHECK_LINEAR][0], residuals[0], 1e-9);
	assert_near(check.quantiles[VP_CHECK_LINEAR][1], vp_quantile(residuals, ROWS - 1, 0.25),
		    1e-9);
	assert_near(check.quantiles[VP_CHECK_LINEAR][2], residuals[(ROWS - 1) / 2], 1e-9);
	assert_near(check.quantiles[VP_CHECK_LINEAR][4], residuals[ROWS - 2], 1e-9);
	assert_int_equal(check.folds, 4);
	vp_model_check_deinit(&check);
	vp_data_deinit(&data);
}

/* By models that have not seen the workload. */
static void test_check_workloads(void **state)
{
	const struct vp_linear_options linear = {0};
	const struct vp_m5_options tree = {.minimum = 4};
	struct vp_data data = made_data();
	struct vp_model_check check;

	/* Of one workload the target is more by 1000. */
	for (size_t i = 0; i < ROWS; i++)
		if (data.columns.at[0].values[i] == 1)
			data.columns.at[2].values[i] += 1000;
	expect_no_error(vp_model_check_init(&check, &data, "workload", 4, &linear, &tree));
	assert_int_equal(check.workloads.count, GROUPS);
	for (size_t i = 0; i < GROUPS; i++) {
		const struct vp_checked_workload *workload = &check.workloads.at[i];
		assert_string_equal(workload->name, workloads[i]);
		/* 0, 3, … 39, whose target is not known; 1, 4, … 37; 2, 8, … 38 without 5. */
		assert_int_equal(workload->score[VP_CHECK_LINEAR].n, i == 2 ? 12 : 13);
		assert_int_equal(workload->score[VP_CHECK_TREE].n, i == 2 ? 12 : 13);
		assert_int_equal(workload->score[VP_CHECK_LINEAR].ignored, i == 0);
	}
	double least = vp_score_mae(&check.workloads.at[1].score[VP_CHECK_LINEAR]);
	assert_true(least > 900); /* nothing else is like it */
	assert_true(vp_score_mae(&check.workloads.at[0].score[VP_CHECK_LINEAR]) < least);
	vp_model_check_deinit(&check);
	vp_data_deinit(&data);
}

static void test_check_refuses(void **state)
{
	static const char *const one[] = {"make"};
	const struct vp_linear_options linear = {0};
	const struct vp_m5_options tree = {.minimum = 4};
	struct vp_data data = made_data();
	struct vp_model_check check;

	expect_error(vp_model_check_init(&check, &data, "x", 4, &linear, &tree),
		     "at least two different values in column 'x'");
	vp_data_deinit(&data);
	data = (struct vp_data){.rows = 4};
	add_words(&data, "workload", one, 1);
	add_numbers(&data, "x");
	expect_error(vp_model_check_init(&check, &data, "workload", 4, &linear, &tree),
		     "at least two different values in column 'workload'");
	vp_data_deinit(&data);
	/* Without workloads. */
	data = made_data();
	expect_no_error(vp_model_check_init(&check, &data, NULL, 4, &linear, &tree));
	assert_int_equal(data.columns.count, 3);
	assert_int_equal(check.workloads.count, 0);
	vp_model_check_deinit(&check);
	vp_data_deinit(&data);
}

static const struct vp_linear_options plain;

/* y = 1 + 2 a1 + 3 a2 + 4 b + 5 c. */
static struct vp_data grouped_data(struct vp_linear **model)
{
	struct vp_data data = {.rows = ROWS, .target = 4};
	double *a1 = add_numbers(&data, "a1"), *a2 = add_numbers(&data, "a2");
	double *b = add_numbers(&data, "b"), *c = add_numbers(&data, "c*");
	double *y = add_numbers(&data, "y");
	uint32_t rows[ROWS];
	struct vp_random random;

	vp_random_init(&random, 7);
	for (uint32_t i = 0; i < ROWS; i++) {
		rows[i] = i;
		a1[i] = vp_random_below(&random, 1000);
		a2[i] = a1[i] + vp_random_below(&random, 10); /* nearly the same */
		b[i] = vp_random_below(&random, 1000);
		c[i] = vp_random_below(&random, 1000);
		y[i] = 1 + 2 * a1[i] + 3 * a2[i] + 4 * b[i] + 5 * c[i];
	}
	*model = vp_linear_build(&data, rows, ROWS, &plain);
	return data;
}

static double mean_of(const struct vp_data *data, size_t column)
{
	double sum = 0;

	for (size_t i = 0; i < data->rows; i++)
		sum += data->columns.at[column].values[i];
	return sum / (double)data->rows;
}

static void assert_group(const struct vp_model_groups *groups, size_t index, const char *name,
			 size_t members, double part, double whole)
{
	const struct vp_model_group *group = &groups->at.at[index];

	assert_string_equal(group->name, name);
	assert_int_equal(group->members, members);
	assert_near(group->part, part, 1e-6);
	assert_near(group->contribution, 100 * part / whole, 1e-6);
}

static void test_groups(void **state)
{
	struct vp_linear *model;
	struct vp_data data = grouped_data(&model);
	struct vp_model_groups groups;
	double a1 = mean_of(&data, 0), a2 = mean_of(&data, 1), b = mean_of(&data, 2),
	       c = mean_of(&data, 3), y = mean_of(&data, 4);
	static const char text[] = "# by hand\n\n \t memory of all :a*  # both\r\n"
				   "cpu: c* , b";

	vp_model_groups_propose(&groups, model, &data);
	assert_int_equal(groups.at.count, 3);
	assert_group(&groups, 0, "a1 and 1 more", 2, 2 * a1 + 3 * a2, y);
	assert_group(&groups, 1, "b", 1, 4 * b, y);
	assert_group(&groups, 2, "c*", 1, 5 * c, y);
	vp_model_groups_deinit(&groups);

	temporary_file(FILE_NAME, text, sizeof(text) - 1);
	expect_no_error(vp_model_groups_read(&groups, FILE_NAME, model, &data));
	assert_int_equal(groups.at.count, 2);
	assert_group(&groups, 0, "memory of all", 2, 2 * a1 + 3 * a2, y);
	assert_group(&groups, 1, "cpu", 2, 4 * b + 5 * c, y);
	vp_model_groups_deinit(&groups);

	/* Columns in no line are groups of their own; the target is in none. */
	temporary_file(FILE_NAME, "one: b, y\n", 10);
	expect_no_error(vp_model_groups_read(&groups, FILE_NAME, model, &data));
	assert_int_equal(groups.at.count, 4);
	assert_group(&groups, 0, "one", 1, 4 * b, y);
	assert_group(&groups, 1, "a1", 1, 2 * a1, y);
	assert_group(&groups, 3, "c*", 1, 5 * c, y);
	vp_model_groups_deinit(&groups);
	vp_linear_free(model);
	vp_data_deinit(&data);
}

static void test_groups_refused(void **state)
{
	static const char *const wrong[][2] = {{"cpu b\n", FILE_NAME ":1: expected 'NAME: COLUMN"},
					       {"\ncpu #: b\n", FILE_NAME ":2: expected 'NAME:"},
					       {"cpu: b, d*\n", FILE_NAME ":1: no column 'd*'"}};
	struct vp_linear *model;
	struct vp_data data = grouped_data(&model);
	struct vp_model_groups groups;

	for (unsigned i = 0; i < VP_ARRAY_SIZE(wrong); i++) {
		temporary_file(FILE_NAME, wrong[i][0], strlen(wrong[i][0]));
		expect_error(vp_model_groups_read(&groups, FILE_NAME, model, &data), wrong[i][1]);
	}
	expect_error(vp_model_groups_read(&groups, "/nonexistent", model, &data), "/nonexistent");
	vp_linear_free(model);
	vp_data_deinit(&data);
}

static const char *const words_of[VP_SIDES][2] = {{"x", "y"}, {"z", "y"}};
static const char *const paths[VP_SIDES] = {"native.csv", "virtual.csv"};

/* y = 1 + 2 a, natively; virtualized it is 4 + 3 a + 5 b. */
static void made_sides(struct vp_data sides[VP_SIDES])
{
	struct vp_random random;

	vp_random_init(&random, 13);
	for (size_t side = 0; side < VP_SIDES; side++) {
		struct vp_data *data = &sides[side];
		*data = (struct vp_data){.rows = side ? 12 : 10};
		double *y = side ? NULL : add_numbers(data, "y");
		double *a = add_numbers(data, "a");
		double *b = side ? add_numbers(data, "b") : NULL;
		y = y ? y : add_numbers(data, "y");
		double *words = add_words(data, "w", words_of[side], 2);
		for (size_t i = 0; i < data->rows; i++) {
			a[i] = vp_random_below(&random, 100);
			if (b)
				b[i] = vp_random_below(&random, 100);
			y[i] = side ? 4 + 3 * a[i] + 5 * b[i] : 1 + 2 * a[i];
			words[i] = (double)(i % 2);
		}
		words[3] = NAN;
	}
	sides[VP_VIRTUAL].columns.at[2].values[0] = NAN;
}

static void sides_deinit(struct vp_data sides[VP_SIDES])
{
	vp_data_deinit(&sides[VP_NATIVE]);
	vp_data_deinit(&sides[VP_VIRTUAL]);
}

static void test_merge(void **state)
{
	static const char *const names[] = {VP_MERGED_COLUMN, "a", "w", "b", "y"};
	struct vp_data sides[VP_SIDES], merged;

	made_sides(sides);
	expect_no_error(vp_comparison_merge(sides, paths, &merged));
	assert_true(merged.rows == 22 && merged.columns.count == 4 && merged.target == 3);
	vp_comparison_mark(&merged, 10);
	assert_true(merged.columns.count == 5 && merged.target == 4);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(merged.columns.at[i].name, names[i]);
	const struct vp_column *columns = merged.columns.at;
	assert_int_equal(columns[2].labels.count, 3);
	assert_string_equal(columns[2].labels.at[2], "z");
	for (size_t row = 0; row < 22; row++) {
		const struct vp_data *from = &sides[row >= 10];
		size_t own = row >= 10 ? row - 10 : row;
		assert_near(columns[0].values[row], row >= 10, 0);
		assert_near(columns[1].values[row], from->columns.at[row >= 10 ? 0 : 1].values[own],
			    0);
		assert_near(columns[3].values[row], row >= 10 ? from->columns.at[1].values[own] : 0,
			    0);
		if (own == 3) {
			assert_true(isnan(columns[2].values[row]));
			continue;
		}
		assert_string_equal(columns[2].labels.at[(size_t)columns[2].values[row]],
				    words_of[row >= 10][own % 2]);
	}
	vp_data_deinit(&merged);
	sides_deinit(sides);
}

static void test_merge_refuses(void **state)
{
	struct vp_data sides[VP_SIDES], merged;

	made_sides(sides);
	free(sides[VP_VIRTUAL].columns.at[2].name);
	sides[VP_VIRTUAL].columns.at[2].name = vp_strdup("x");
	expect_error(vp_comparison_merge(sides, paths, &merged), "virtual.csv: no column 'y'");
	sides_deinit(sides);
	made_sides(sides);
	sides[VP_VIRTUAL].columns.at[0].type = VP_DATA_NOMINAL;
	expect_error(vp_comparison_merge(sides, paths, &merged),
		     "virtual.csv: column 'a': expected numbers");
	sides_deinit(sides);
	made_sides(sides);
	sides[VP_VIRTUAL].columns.at[3].type = VP_DATA_NUMERIC;
	expect_error(vp_comparison_merge(sides, paths, &merged),
		     "virtual.csv: column 'w': expected words");
	free(sides[VP_NATIVE].columns.at[1].name);
	sides[VP_NATIVE].columns.at[1].name = vp_strdup(VP_MERGED_COLUMN);
	expect_error(vp_comparison_merge(sides, paths, &merged),
		     "native.csv: column 'virtualized' is not allowed here");
	sides_deinit(sides);
}

static void test_comparison(void **state)
{
	struct vp_data sides[VP_SIDES], merged;
	struct vp_comparison comparison;
	double a[VP_SIDES] = {0}, b = 0, path[VP_SIDES] = {0};

	made_sides(sides);
	for (size_t side = 0; side < VP_SIDES; side++)
		vp_data_column_remove(&sides[side], side ? 3 : 2);
	expect_no_error(vp_comparison_merge(sides, paths, &merged));
	for (size_t row = 0; row < 22; row++) {
		double value = merged.columns.at[0].values[row];
		path[row >= 10] += value;
		if (row != 10) /* its target is not known */
			a[row >= 10] += value / (row >= 10 ? 11 : 10);
		if (row > 10)
			b += merged.columns.at[1].values[row] / 11;
	}
	temporary_file(FILE_NAME, "all: a\n", 7);
	expect_no_error(vp_comparison_init(&comparison, &merged, 10, &plain, FILE_NAME, "a"));
	assert_string_equal(comparison.target, "y");
	assert_true(comparison.rows[VP_NATIVE] == 10 && comparison.rows[VP_VIRTUAL] == 11);
	assert_near(comparison.path[VP_NATIVE], path[0], 1e-9);
	assert_near(comparison.path[VP_VIRTUAL], path[1], 1e-9);
	assert_near(comparison.mean[VP_NATIVE], 1 + 2 * a[0], 1e-9);
	assert_near(comparison.mean[VP_VIRTUAL], 4 + 3 * a[1] + 5 * b, 1e-9);
	assert_near(comparison.correlation[VP_NATIVE], 1, 1e-9);
	assert_int_equal(comparison.groups.count, 3);
	const double expected[][VP_SIDES] = {{2 * a[0], 3 * a[1]}, {0, 5 * b}, {1, 4}};
	static const char *const names[] = {"all", "b", "(constant)"};
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(comparison.groups.at[i].name, names[i]);
		assert_near(comparison.groups.at[i].part[VP_NATIVE], expected[i][0], 1e-8);
		assert_near(comparison.groups.at[i].part[VP_VIRTUAL], expected[i][1], 1e-8);
	}
	vp_comparison_deinit(&comparison);
	/* Rows count where there is no column for the path's length. */
	expect_no_error(vp_comparison_init(&comparison, &merged, 10, &plain, NULL, NULL));
	assert_true(comparison.path[VP_NATIVE] == 10 && comparison.path[VP_VIRTUAL] == 12);
	vp_comparison_deinit(&comparison);
	expect_error(vp_comparison_init(&comparison, &merged, 10, &plain, NULL, "nosuch"),
		     "option --path: no column 'nosuch'");
	temporary_file(FILE_NAME, "all: nosuch\n", 12);
	expect_error(vp_comparison_init(&comparison, &merged, 10, &plain, FILE_NAME, NULL),
		     "no column 'nosuch'");
	vp_data_deinit(&merged);
	sides_deinit(sides);
}

static const char *const colours[] = {"red", "green", "blue"};

/* A tree with a cut by a number, and one by words. */
static struct vp_data tree_data(struct vp_m5 **tree, const struct vp_m5_options *options)
{
	enum { MANY = 200 };
	struct vp_data data = {.rows = MANY, .target = 2, .name = vp_strdup("trees")};
	double *x = add_numbers(&data, "x"), *words = add_words(&data, "colour", colours, 3);
	double *y = add_numbers(&data, "y");
	uint32_t rows[MANY];
	struct vp_random random;

	vp_random_init(&random, 11);
	for (uint32_t i = 0; i < MANY; i++) {
		rows[i] = i;
		x[i] = vp_random_below(&random, 1000) / 16.0;
		words[i] = vp_random_below(&random, 3);
		y[i] = (x[i] > 30 ? 1000 - 7 * x[i] : 5 * x[i]) + (words[i] == 1 ? 300 : 0) +
		       vp_random_below(&random, 8);
	}
	x[3] = words[4] = NAN;
	*tree = vp_m5_build(&data, rows, MANY, options);
	return data;
}

/* What is as it is without a rest has no error, but for the ridge of WEKA's regression, 1e-8. */
static void test_exact_leaf(void **state)
{
	const struct vp_m5_options options = {.minimum = 4};
	struct vp_data data = {.rows = ROWS, .target = 1};
	double *x = add_numbers(&data, "x"), *y = add_numbers(&data, "y");
	uint32_t rows[ROWS];

	for (uint32_t i = 0; i < ROWS; i++) {
		rows[i] = i;
		x[i] = i;
		y[i] = 5 - 2 * x[i];
	}
	struct vp_m5 *tree = vp_m5_build(&data, rows, ROWS, &options);
	assert_int_equal(tree->leaves, 1);
	assert_near(tree->root->rmse, 0, 1e-6);
	assert_near(tree->root->mean, 5 - 2 * (ROWS - 1) / 2.0, 1e-6);
	assert_int_equal(tree->root->rows, ROWS);
	assert_near(tree->root->model.coefficients[0], -2, 1e-6);
	assert_near(tree->root->model.intercept, 5, 1e-6);
	vp_m5_free(tree);
	vp_data_deinit(&data);
}

static void save(const struct vp_m5 *tree, const struct vp_data *data, struct vp_buffer *text)
{
	vp_model_save(tree, data, text);
	temporary_file(FILE_NAME, text->bytes, text->size);
}

static void test_saved_tree(void **state)
{
	const struct vp_m5_options all[] = {{.minimum = 4},
					    {.minimum = 9, .unsmoothed = true},
					    {.minimum = 5, .unpruned = true, .nonneg = true},
					    {.minimum = 6, .regression = true}};

	for (unsigned i = 0; i < VP_ARRAY_SIZE(all); i++) {
		struct vp_m5 *tree, *loaded;
		struct vp_data data = tree_data(&tree, &all[i]), schema;
		struct vp_buffer text = {0}, again = {0};
		assert_true(tree->leaves > 1);
		save(tree, &data, &text);
		expect_no_error(vp_model_load(FILE_NAME, &loaded, &schema));
		assert_string_equal(loaded->target, "y");
		assert_int_equal(loaded->leaves, tree->leaves);
		assert_memory_equal(&loaded->options, &all[i], sizeof(all[i]));
		assert_int_equal(schema.target, 2);
		assert_int_equal(schema.columns.count, 3);
		assert_string_equal(schema.columns.at[1].labels.at[2], "blue");
		for (size_t row = 0; row < data.rows; row++) {
			assert_near(vp_m5_predict(loaded, &data, row),
				    vp_m5_predict(tree, &data, row), 1e-9);
			assert_int_equal(vp_m5_leaf(loaded, &data, row)->number,
					 vp_m5_leaf(tree, &data, row)->number);
		}
		vp_model_save(loaded, &schema, &again);
		assert_string_equal(vp_buffer_text(&again), vp_buffer_text(&text));
		vp_m5_free(loaded);
		vp_data_deinit(&schema);
		vp_m5_free(tree);
		vp_data_deinit(&data);
		vp_buffer_deinit(&text);
		vp_buffer_deinit(&again);
	}
}

/* Replaces the first `old` of the file's text. */
static void expect_refused(const struct vp_buffer *text, const char *old, const char *new,
			   const char *key)
{
	const char *at = strstr(text->bytes, old);
	struct vp_m5 *tree;
	struct vp_data schema;

	assert_non_null(at);
	VP_AUTO_FREE char *changed =
	    vp_format("%.*s%s%s", (int)(at - text->bytes), text->bytes, new, at + strlen(old));
	VP_AUTO_FREE char *expected = vp_format("wrong or missing '%s'", key);
	temporary_file(FILE_NAME, changed, strlen(changed));
	expect_error(vp_model_load(FILE_NAME, &tree, &schema), expected);
}

static void test_damaged_trees(void **state)
{
	static const char *const wrong[][3] = {
	    {"vperf model tree 1", "vperf model tree 2", "format"},
	    {"{", "[", "format"},
	    {"\"target\": 2", "\"target\": 3", "target"},
	    {"\"target\": 2", "\"target\": -1", "target"},
	    {"\"target\": 2", "\"target\": \"y\"", "target"},
	    {"\"minimum\": ", "\"least\": ", "minimum"},
	    {"\"unpruned\": false", "\"unpruned\": 0", "unpruned"},
	    {"\"columns\": [", "\"columns\": [ 1,", "columns"},
	    {"\"name\": \"x\"", "\"name\": 7", "name"},
	    {"\"labels\": [", "\"labels\": [ \"black\", ", "ranks"},
	    {"\"ranks\": [", "\"ranked\": [", "ranks"},
	    {"\"inputs\": [", "\"inputs\": [ 1, ", "inputs"},
	    {"\"column\": 1", "\"column\": 3", "column"},
	    {"\"column\": 0", "\"column\": 1", "rank"},
	    {"\"rank\": ", "\"order\": ", "rank"},
	    {"\"rmse\": ", "\"error\": ", "rmse"},
	    {"\"cut\": ", "\"cat\": ", "cut"},
	    {"\"left\": {", "\"left\": 1, \"was\": {", "left"},
	    {"\"right\": {", "\"wrong\": {", "right"},
	    {"\"coefficients\": [", "\"coefficients\": [ 1.0, ", "coefficients"},
	    {"\"constant\": ", "\"variable\": ", "constant"}};
	const struct vp_m5_options options = {.minimum = 4};
	struct vp_m5 *tree, *none;
	struct vp_data data = tree_data(&tree, &options), schema;
	struct vp_buffer text = {0};

	save(tree, &data, &text);
	assert_non_null(strstr(vp_buffer_text(&text), "\"rank\": "));
	for (unsigned i = 0; i < VP_ARRAY_SIZE(wrong); i++)
		expect_refused(&text, wrong[i][0], wrong[i][1], wrong[i][2]);
	expect_error(vp_model_load("/nonexistent", &none, &schema), "/nonexistent");
	vp_buffer_deinit(&text);
	vp_m5_free(tree);
	vp_data_deinit(&data);
}

/* Columns and words in another order, one too many, and no target. */
static void test_aligned(void **state)
{
	static const char *const others[] = {"blue", "red"};
	const struct vp_m5_options options = {.minimum = 4};
	struct vp_m5 *tree;
	struct vp_data schema = tree_data(&tree, &options);
	struct vp_data data = {.rows = 3, .name = vp_strdup("other")}, aligned;
	double *words = add_words(&data, "colour", others, 2);
	double *more = add_numbers(&data, "more"), *x = add_numbers(&data, "x");

	for (size_t i = 0; i < 3; i++) {
		more[i] = 99;
		x[i] = (double)i + 7;
		words[i] = (double)i;
	}
	words[2] = NAN;
	expect_no_error(vp_model_align(&schema, &data, "f", &aligned));
	assert_string_equal(aligned.name, "other");
	assert_true(aligned.rows == 3 && aligned.target == 2 && aligned.columns.count == 3);
	assert_string_equal(aligned.columns.at[1].labels.at[1], "green");
	assert_near(aligned.columns.at[0].values[1], 8, 0);
	assert_near(aligned.columns.at[1].values[0], 2, 0);
	assert_near(aligned.columns.at[1].values[1], 0, 0);
	assert_true(isnan(aligned.columns.at[1].values[2]));
	assert_true(isnan(aligned.columns.at[2].values[0]));
	vp_data_deinit(&aligned);

	free(data.columns.at[0].labels.at[0]);
	data.columns.at[0].labels.at[0] = vp_strdup("black");
	expect_error(vp_model_align(&schema, &data, "f", &aligned),
		     "f: column 'colour': value 'black' is not in the model");
	data.columns.at[0].type = VP_DATA_NUMERIC;
	expect_error(vp_model_align(&schema, &data, "f", &aligned),
		     "f: column 'colour': expected words");
	data.columns.at[2].type = VP_DATA_NOMINAL;
	expect_error(vp_model_align(&schema, &data, "f", &aligned),
		     "f: column 'x': expected numbers");
	vp_data_column_remove(&data, 2);
	expect_error(vp_model_align(&schema, &data, "f", &aligned), "f: expected a column 'x'");
	vp_data_deinit(&data);
	vp_m5_free(tree);
	vp_data_deinit(&schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_check_rows),     cmocka_unit_test(test_check_workloads),
	    cmocka_unit_test(test_check_refuses),  cmocka_unit_test(test_groups),
	    cmocka_unit_test(test_groups_refused), cmocka_unit_test(test_merge),
	    cmocka_unit_test(test_merge_refuses),  cmocka_unit_test(test_comparison),
	    cmocka_unit_test(test_exact_leaf),     cmocka_unit_test(test_saved_tree),
	    cmocka_unit_test(test_damaged_trees),  cmocka_unit_test(test_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
