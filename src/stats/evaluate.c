/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/evaluate.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "stats/data.h"
#include "stats/random.h"

void vp_score_add(struct vp_score *score, double actual, double predicted, double mean)
{
	if (isnan(actual)) {
		score->ignored++;
		return;
	}
	double off = predicted - actual, mean_off = mean - actual;
	score->n++;
	score->sum += actual;
	score->squares += actual * actual;
	score->products += actual * predicted;
	score->predicted += predicted;
	score->predicted_squares += predicted * predicted;
	score->absolute_error += fabs(off);
	score->squared_error += off * off;
	score->mean_absolute_error += fabs(mean_off);
	score->mean_squared_error += mean_off * mean_off;
}

double vp_score_correlation(const struct vp_score *s)
{
	double actual = s->squares - s->sum * s->sum / s->n;
	double predicted = s->predicted_squares - s->predicted * s->predicted / s->n;
	double together = s->products - s->sum * s->predicted / s->n;

	return actual * predicted <= 0 ? 0 : together / sqrt(actual * predicted);
}

double vp_score_mae(const struct vp_score *score)
{
	return score->absolute_error / score->n;
}

double vp_score_rmse(const struct vp_score *score)
{
	return sqrt(score->squared_error / score->n);
}

double vp_score_rae(const struct vp_score *score)
{
	return 100.0 * vp_score_mae(score) / (score->mean_absolute_error / score->n);
}

double vp_score_rrse(const struct vp_score *score)
{
	return 100.0 * vp_score_rmse(score) / sqrt(score->mean_squared_error / score->n);
}

static void *m5_learn(const void *options, const struct vp_data *data, const uint32_t *rows,
		      size_t n)
{
	return vp_m5_build(data, rows, n, options);
}

static double m5_predict(const void *model, const struct vp_data *data, size_t row)
{
	return vp_m5_predict(model, data, row);
}

static void m5_forget(void *model)
{
	vp_m5_free(model);
}

struct vp_learner vp_m5_learner(const struct vp_m5_options *options)
{
	return (struct vp_learner){m5_learn, m5_predict, m5_forget, options};
}

static double evaluate_mean_of(const double *y, const uint32_t *rows, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += y[rows[i]];
	return sum / (double)n;
}

void vp_score_training(const struct vp_learner *learner, const void *model,
		       const struct vp_data *data, struct vp_score *score)
{
	const double *y = data->columns.at[data->target].values;
	size_t n;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);
	double mean = evaluate_mean_of(y, rows, n);

	for (size_t row = 0; row < data->rows; row++)
		vp_score_add(score, y[row], learner->predict(model, data, row), mean);
}

/* Training rows of one model, and the rows to predict. */
struct fold {
	uint32_t *train, *test;
	size_t n_train, n_test;
	double mean;
};

struct validation {
	const struct vp_learner *learner;
	const struct vp_data *data;
	struct fold *folds;
	size_t n_folds;
	double *predicted; /* by row */
	/* Makes the folds, one at a time, on request of the threads. */
	void (*make)(struct validation *v, size_t number);
	const uint32_t *order;  /* all rows, shuffled; or */
	const uint32_t *groups; /* the group of each row */
	struct vp_random random;
	pthread_mutex_t lock;
	size_t next, begin;
};

static void put_in_order(uint32_t *rows, size_t n, size_t n_data)
{
	VP_AUTO_FREE bool *wanted = vp_alloc(n_data);
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		wanted[rows[i]] = true;
	for (size_t row = 0; row < n_data; row++)
		if (wanted[row])
			rows[at++] = (uint32_t)row;
}

static void predict_fold(const struct validation *v, struct fold *fold)
{
	const double *y = v->data->columns.at[v->data->target].values;

	fold->mean = fold->n_train ? evaluate_mean_of(y, fold->train, fold->n_train) : NAN;
	if (v->learner->any_order)
		put_in_order(fold->train, fold->n_train, v->data->rows);
	void *model = fold->n_train ? v->learner->learn(v->learner->options, v->data, fold->train,
							fold->n_train)
				    : NULL;
	for (size_t i = 0; i < fold->n_test; i++)
		v->predicted[fold->test[i]] =
		    model ? v->learner->predict(model, v->data, fold->test[i]) : NAN;
	if (model)
		v->learner->forget(model);
}

static void *validate(void *argument)
{
	struct validation *v = argument;

	for (;;) {
		pthread_mutex_lock(&v->lock);
		size_t number = v->next;
		if (number < v->n_folds) {
			v->next++;
			v->make(v, number);
		}
		pthread_mutex_unlock(&v->lock);
		if (number == v->n_folds)
			return NULL;
		predict_fold(v, &v->folds[number]);
		free(v->folds[number].train);
	}
}

static void run_folds(struct validation *v)
{
	enum { MAX = 256 };
	pthread_t threads[MAX];
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t wanted = processors > 1 ? (size_t)processors : 1, started = 0;

	if (wanted > MAX)
		wanted = MAX;
	if (wanted > v->n_folds)
		wanted = v->n_folds;
	v->folds = vp_alloc(v->n_folds * sizeof(*v->folds));
	pthread_mutex_init(&v->lock, NULL);
	while (started + 1 < wanted && !pthread_create(&threads[started], NULL, validate, v))
		started++;
	validate(v);
	while (started)
		pthread_join(threads[--started], NULL);
	pthread_mutex_destroy(&v->lock);
}

static size_t keep_known(const double *y, uint32_t *rows, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(y[rows[i]]))
			rows[kept++] = rows[i];
	return kept;
}

/* The next rows in shuffled order are predicted; the others are shuffled again for training. */
static void make_fold(struct validation *v, size_t number)
{
	struct fold *fold = &v->folds[number];
	size_t n = v->data->rows, begin = v->begin;
	size_t n_test = n / v->n_folds + (number < n % v->n_folds);

	fold->train = vp_realloc_array(NULL, n, sizeof(*fold->train));
	fold->test = vp_realloc_array(NULL, n_test, sizeof(*fold->test));
	memcpy(fold->test, v->order + begin, n_test * sizeof(*fold->test));
	memcpy(fold->train, v->order, begin * sizeof(*fold->train));
	memcpy(fold->train + begin, v->order + begin + n_test,
	       (n - begin - n_test) * sizeof(*fold->train));
	fold->n_test = n_test;
	vp_random_shuffle(&v->random, fold->train, n - n_test);
	fold->n_train =
	    keep_known(v->data->columns.at[v->data->target].values, fold->train, n - n_test);
	v->begin += n_test;
}

static void folds_free(struct fold *folds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(folds[i].test);
	free(folds);
}

static void score_fold(const struct vp_data *data, const struct fold *fold, const double *predicted,
		       struct vp_score *score)
{
	const double *y = data->columns.at[data->target].values;

	for (size_t i = 0; i < fold->n_test; i++)
		vp_score_add(score, y[fold->test[i]], predicted[fold->test[i]], fold->mean);
}

void vp_cross_validate(const struct vp_learner *learner, const struct vp_data *data, size_t folds,
		       struct vp_score *score, double *predicted)
{
	VP_AUTO_FREE uint32_t *order = vp_realloc_array(NULL, data->rows, sizeof(*order));
	VP_AUTO_FREE double *own = vp_alloc(data->rows * sizeof(*own));
	struct validation v = {.learner = learner,
			       .data = data,
			       .n_folds = folds,
			       .predicted = predicted ? predicted : own,
			       .make = make_fold,
			       .order = order};

	for (size_t i = 0; i < data->rows; i++)
		order[i] = (uint32_t)i;
	vp_random_init(&v.random, 1);
	vp_random_shuffle(&v.random, order, data->rows);
	run_folds(&v);
	for (size_t i = 0; i < folds; i++)
		score_fold(data, &v.folds[i], v.predicted, score);
	folds_free(v.folds, folds);
}

static void make_group(struct validation *v, size_t number)
{
	struct fold *fold = &v->folds[number];
	size_t n = v->data->rows, in_group = 0;

	for (size_t row = 0; row < n; row++)
		in_group += v->groups[row] == number;
	fold->train = vp_realloc_array(NULL, n - in_group, sizeof(*fold->train));
	fold->test = vp_realloc_array(NULL, in_group, sizeof(*fold->test));
	for (size_t row = 0; row < n; row++)
		if (v->groups[row] == number)
			fold->test[fold->n_test++] = (uint32_t)row;
		else
			fold->train[fold->n_train++] = (uint32_t)row;
	fold->n_train =
	    keep_known(v->data->columns.at[v->data->target].values, fold->train, fold->n_train);
}

void vp_leave_group_out(const struct vp_learner *learner, const struct vp_data *data,
			const uint32_t *groups, size_t n_groups, struct vp_score *scores,
			double *predicted)
{
	struct validation v = {.learner = learner,
			       .data = data,
			       .n_folds = n_groups,
			       .predicted = predicted,
			       .make = make_group,
			       .groups = groups};

	run_folds(&v);
	for (size_t i = 0; i < n_groups; i++)
		score_fold(data, &v.folds[i], predicted, &scores[i]);
	folds_free(v.folds, n_groups);
}
