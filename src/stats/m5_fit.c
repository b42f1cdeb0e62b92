/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/m5_fit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "stats/nnls.h"
#include "stats/solve.h"

/* Rows per block: the values of a block fit into the L1 cache. */
enum { BLOCK = 64 };
/* weka.classifiers.functions.LinearRegression: ridge, and limit of collinear coefficients. */
#define RIDGE 1e-8
#define COLLINEAR 1.5

struct fit {
	const struct vp_fit_task *task;
	const double *gathered;
	size_t k; /* candidates */
	double *mean, *sd;
	double y_mean, y_sd;
	double *products;    /* k x k, of the standardised candidates */
	double *with_target; /* of the standardised candidates with the raw target */
	bool *selected;
	double *b;     /* of the selected candidates, in order, then the intercept */
	double *trial; /* the same, with one predictor omitted */
	double *part;  /* scratch memory for the solver */
};

void vp_fit_work_deinit(struct vp_fit_work *work)
{
	free(work->gathered);
	*work = (struct vp_fit_work){0};
}

static size_t blocks_of(size_t n)
{
	return (n + BLOCK - 1) / BLOCK;
}

/* Copies the candidates' values block by block: per block, BLOCK values of each candidate. */
static void m5_fit_gather(struct vp_fit_work *work, const struct vp_fit_task *task)
{
	size_t k = task->n_candidates, need = blocks_of(task->n) * BLOCK * k;

	if (need > work->room || !work->gathered) {
		free(work->gathered);
		work->gathered = vp_realloc_array(NULL, need, sizeof(double));
		work->room = need;
	}
	for (size_t j = 0; j < k; j++) {
		const double *x = task->matrix->x[task->candidates[j]];
		for (size_t i = 0; i < task->n; i++)
			work->gathered[(i / BLOCK * k + j) * BLOCK + i % BLOCK] = x[task->rows[i]];
	}
}

/* Mean and standard deviation (n - 1) from one-pass sums, without correction of rounding; never
 * below 0. */
static void finish_moments(double sum, double squares, double n, double *mean, double *sd)
{
	double variance = n <= 1 ? 0 : (squares - sum * sum / n) / (n - 1);

	*mean = n > 0 ? sum / n : 0;
	*sd = sqrt(variance < 0 ? 0 : variance);
}

static void moments(struct fit *fit)
{
	size_t n = fit->task->n;
	double sum = 0, squares = 0;

	for (size_t j = 0; j < fit->k; j++) {
		double s = 0, q = 0;
		for (size_t i = 0; i < n; i++) {
			double v = fit->gathered[(i / BLOCK * fit->k + j) * BLOCK + i % BLOCK];
			s += v;
			q += v * v;
		}
		finish_moments(s, q, (double)n, &fit->mean[j], &fit->sd[j]);
		fit->selected[j] = fit->sd[j] != 0;
	}
	for (size_t i = 0; i < n; i++) {
		double v = fit->task->matrix->y[fit->task->rows[i]];
		sum += v;
		squares += v * v;
	}
	finish_moments(sum, squares, (double)n, &fit->y_mean, &fit->y_sd);
}

/* Adds one row to the upper triangle of the products. */
static void add_row_to_fit(struct fit *fit, const double *z, double y)
{
	size_t k = fit->k;

	for (size_t i = 0; i < k; i++) {
		double *restrict into = fit->products + i * k;
		double zi = z[i];
		for (size_t j = i; j < k; j++)
			into[j] += zi * z[j];
		fit->with_target[i] += zi * y;
	}
}

static void multiply(struct fit *fit)
{
	size_t n = fit->task->n, k = fit->k;
	VP_AUTO_FREE double *z = vp_alloc(BLOCK * k * sizeof(*z));

	for (size_t begin = 0; begin < n; begin += BLOCK) {
		const double *x = fit->gathered + begin * k;
		size_t rows = n - begin < BLOCK ? n - begin : BLOCK;
		for (size_t j = 0; j < k; j++)
			for (size_t i = 0; fit->selected[j] && i < rows; i++)
				z[i * k + j] = (x[j * BLOCK + i] - fit->mean[j]) / fit->sd[j];
		for (size_t i = 0; i < rows; i++)
			add_row_to_fit(fit, z + i * k,
				       fit->task->matrix->y[fit->task->rows[begin + i]]);
	}
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < i; j++)
			fit->products[i * k + j] = fit->products[j * k + i];
}

static size_t count_selected(const struct fit *fit)
{
	size_t count = 0;

	for (size_t j = 0; j < fit->k; j++)
		count += fit->selected[j];
	return count;
}

/* The normal equations of the selected candidates; returns their number. */
static size_t normal_equations(const struct fit *fit, double ridge, double *b)
{
	size_t n = count_selected(fit), row = 0;

	for (size_t i = 0; i < fit->k; i++) {
		if (!fit->selected[i])
			continue;
		size_t column = 0;
		for (size_t j = 0; j < fit->k; j++)
			if (fit->selected[j])
				fit->part[row * n + column++] = fit->products[i * fit->k + j];
		fit->part[row * n + row] += ridge;
		b[row++] = fit->with_target[i];
	}
	return n;
}

/* Solves for the selected candidates: coefficients of raw values, then the intercept. */
static void solve(const struct fit *fit, double *b)
{
	double ridge = RIDGE;
	size_t n, at = 0;

	if (fit->task->nonneg) {
		VP_AUTO_FREE double *right = vp_alloc((fit->k + 1) * sizeof(*right));
		n = normal_equations(fit, ridge, right);
		vp_nnls(fit->part, right, n, b);
	} else {
		while (n = normal_equations(fit, ridge, b), !vp_solve_lu(fit->part, n, b))
			ridge *= 10;
	}
	b[n] = fit->y_mean;
	for (size_t j = 0; j < fit->k; j++)
		if (fit->selected[j]) {
			b[at] /= fit->sd[j];
			b[n] -= b[at++] * fit->mean[j];
		}
}

static double squared_error(const struct fit *fit, const double *b)
{
	size_t n = fit->task->n, k = fit->k;
	double error = 0;

	for (size_t begin = 0; begin < n; begin += BLOCK) {
		const double *x = fit->gathered + begin * k;
		double predicted[BLOCK] = {0};
		size_t at = 0, rows = n - begin < BLOCK ? n - begin : BLOCK;
		for (size_t j = 0; j < k; j++) {
			if (!fit->selected[j])
				continue;
			for (size_t i = 0; i < BLOCK; i++)
				predicted[i] += b[at] * x[j * BLOCK + i];
			at++;
		}
		for (size_t i = 0; i < rows; i++) {
			double off =
			    predicted[i] + b[at] - fit->task->matrix->y[fit->task->rows[begin + i]];
			error += off * off;
		}
	}
	return error;
}

/* Removes the candidate with the largest standardised coefficient if it exceeds the limit. */
static bool drop_collinear(struct fit *fit)
{
	double most = COLLINEAR;
	size_t at = 0, worst = fit->k;

	for (size_t j = 0; j < fit->k; j++) {
		if (!fit->selected[j])
			continue;
		double size = fabs(fit->b[at++] * fit->sd[j] / fit->y_sd);
		if (size > most) {
			most = size;
			worst = j;
		}
	}
	if (worst == fit->k)
		return false;
	fit->selected[worst] = false;
	return true;
}

static size_t weakest(const struct fit *fit)
{
	double least = 0;
	size_t at = 0, found = fit->k;

	for (size_t j = 0; j < fit->k; j++) {
		if (!fit->selected[j])
			continue;
		double size = fabs(fit->b[at] * fit->sd[j] / fit->y_sd);
		if (at++ == 0 || size < least) {
			least = size;
			found = j;
		}
	}
	return found;
}

/* Removes weak predictors one by one while Akaike's criterion improves. */
static void drop_weak(struct fit *fit)
{
	double all = (double)count_selected(fit) + 1, n = (double)fit->task->n;
	double full_error = squared_error(fit, fit->b);
	double best = n - all + 2 * all;

	for (double parameters = all - 1;; parameters--) {
		size_t candidate = weakest(fit);
		if (candidate == fit->k)
			return;
		fit->selected[candidate] = false;
		solve(fit, fit->trial);
		double criterion =
		    squared_error(fit, fit->trial) / full_error * (n - all) + 2 * parameters;
		if (!(criterion < best)) {
			fit->selected[candidate] = true;
			return;
		}
		best = criterion;
		memcpy(fit->b, fit->trial, (fit->k + 1) * sizeof(*fit->b));
	}
}

static void m5_fit_run(struct fit *fit)
{
	moments(fit);
	multiply(fit);
	do
		solve(fit, fit->b);
	while (!fit->task->nonneg && drop_collinear(fit));
	drop_weak(fit);
}

void vp_m5_fit(const struct vp_fit_task *task, struct vp_fit_work *work,
	       struct vp_linear_model *model)
{
	size_t k = task->n_candidates, at = 0;
	VP_AUTO_FREE double *room = vp_alloc((2 * k * k + 6 * k + 4) * sizeof(*room));
	VP_AUTO_FREE bool *selected = vp_alloc(k + 1);
	struct fit fit = {.task = task, .k = k, .selected = selected};

	m5_fit_gather(work, task);
	fit.gathered = work->gathered;
	fit.mean = room;
	fit.sd = fit.mean + k;
	fit.with_target = fit.sd + k;
	fit.b = fit.with_target + k;
	fit.trial = fit.b + k + 1;
	fit.products = fit.trial + k + 1;
	fit.part = fit.products + k * k;
	m5_fit_run(&fit);

	memset(model->coefficients, 0, task->matrix->n_inputs * sizeof(double));
	model->parameters = 0;
	for (size_t j = 0; j < k; j++)
		if (selected[j]) {
			model->coefficients[task->candidates[j]] = fit.b[at];
			model->parameters += fit.b[at++] != 0;
		}
	model->intercept = fit.b[at];
}
