/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/linear.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "stats/data.h"
#include "stats/nnls.h"

/* A remainder of a standardised column below this fraction of the longest one is rounding error, at
 * least of the numbers in the file: the variance inflation would exceed 1e12. */
#define DEPENDENT 1e-6
/* Relative to the number of rows; only keeps products of dependent columns solvable. */
#define NONNEG_RIDGE 1e-12

struct columns {
	double *z; /* by column, standardised */
	double *y; /* centred */
};

static void columns_init(struct columns *columns, struct vp_linear *model,
			 const struct vp_data *data, const uint32_t *rows, size_t n)
{
	const double *y = data->columns.at[data->target].values;
	size_t k = model->inputs.at.count;

	columns->z = vp_realloc_array(NULL, k * n, sizeof(double));
	columns->y = vp_realloc_array(NULL, n, sizeof(double));
	for (size_t i = 0; i < n; i++)
		model->mean += y[rows[i]] / (double)n;
	for (size_t i = 0; i < n; i++)
		columns->y[i] = y[rows[i]] - model->mean;
	for (size_t j = 0; j < k; j++) {
		struct vp_linear_term *term = &model->terms[j];
		double *z = columns->z + j * n, squares = 0;
		for (size_t i = 0; i < n; i++) {
			z[i] = vp_input_value(&model->inputs, j, data, rows[i]);
			term->mean += z[i] / (double)n;
		}
		for (size_t i = 0; i < n; i++) {
			z[i] -= term->mean;
			squares += z[i] * z[i];
		}
		term->sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
		for (size_t i = 0; i < n; i++)
			z[i] = term->sd > 0 ? z[i] / term->sd : 0;
	}
}

/* Solves for nonnegative coefficients of the standardised columns. */
static void solve_nonneg(const struct columns *columns, size_t n, size_t k, double *b)
{
	VP_AUTO_FREE double *products = vp_alloc(k * k * sizeof(*products));
	VP_AUTO_FREE double *with_target = vp_alloc(k * sizeof(*with_target));

	for (size_t i = 0; i < k; i++) {
		for (size_t j = 0; j <= i; j++) {
			double sum = 0;
			for (size_t row = 0; row < n; row++)
				sum += columns->z[i * n + row] * columns->z[j * n + row];
			products[i * k + j] = products[j * k + i] = sum;
		}
		products[i * k + i] += NONNEG_RIDGE * (double)n;
		for (size_t row = 0; row < n; row++)
			with_target[i] += columns->z[i * n + row] * columns->y[row];
	}
	vp_nnls(products, with_target, k, b);
}

static double residual_squares(const struct columns *columns, size_t n, size_t k, const double *b)
{
	double squares = 0;

	for (size_t row = 0; row < n; row++) {
		double off = columns->y[row];
		for (size_t j = 0; j < k; j++)
			off -= b[j] * columns->z[j * n + row];
		squares += off * off;
	}
	return squares;
}

static double linear_share(const struct vp_linear *model, double part)
{
	return model->mean != 0 ? 100 * part / model->mean : NAN;
}

/* Converts coefficients of standardised columns to those of raw values. */
static void linear_set_terms(struct vp_linear *model, const double *b, double squares)
{
	size_t n = model->rows, k = model->inputs.at.count;
	double free = (double)n - (double)model->rank - 1, spread = 1 / (double)n;

	model->residual = free > 0 ? sqrt(squares / free) : NAN;
	model->constant = model->mean;
	for (size_t j = 0; j < k; j++) {
		struct vp_linear_term *term = &model->terms[j];
		term->unclear = model->fit.unclear[j];
		term->coefficient = term->sd > 0 ? b[j] / term->sd : 0;
		term->error = model->residual * sqrt(model->fit.spread[j]) / term->sd;
		term->inflation = term->unclear ? INFINITY : model->fit.spread[j] * ((double)n - 1);
		if (model->options.nonneg)
			term->error = NAN;
		model->constant -= term->coefficient * term->mean;
		term->contribution = linear_share(model, term->coefficient * term->mean);
	}
	model->constant_contribution = linear_share(model, model->constant);
	VP_AUTO_FREE double *centre = vp_alloc((k + 1) * sizeof(*centre));
	for (size_t j = 0; j < k; j++)
		centre[j] = model->terms[j].sd > 0 ? model->terms[j].mean / model->terms[j].sd : 0;
	spread += vp_lstsq_leverage(&model->fit, centre);
	model->constant_error =
	    model->options.nonneg || model->rank < k ? NAN : model->residual * sqrt(spread);
}

struct vp_linear *vp_linear_build(const struct vp_data *data, const uint32_t *rows, size_t n,
				  const struct vp_linear_options *options)
{
	struct vp_linear *model = vp_alloc(sizeof(*model));
	struct columns columns;

	model->options = *options;
	model->target = vp_strdup(data->columns.at[data->target].name);
	model->rows = n;
	vp_inputs_learn(&model->inputs, data, rows, n);
	size_t k = model->inputs.at.count;
	model->terms = vp_alloc(k * sizeof(*model->terms));
	columns_init(&columns, model, data, rows, n);
	VP_AUTO_FREE double *b = vp_alloc((k + 1) * sizeof(*b));
	double squares = 0;
	if (options->nonneg) {
		solve_nonneg(&columns, n, k, b);
		squares = residual_squares(&columns, n, k, b);
	}
	vp_lstsq_solve(&model->fit, columns.z, n, k, columns.y, DEPENDENT);
	model->rank = model->fit.rank;
	linear_set_terms(model, options->nonneg ? b : model->fit.b,
			 options->nonneg ? squares : model->fit.residual);
	free(columns.z);
	free(columns.y);
	return model;
}

void vp_linear_free(struct vp_linear *model)
{
	if (!model)
		return;
	vp_lstsq_deinit(&model->fit);
	vp_inputs_deinit(&model->inputs);
	free(model->terms);
	free(model->target);
	free(model);
}

double vp_linear_row(const struct vp_linear *model, const struct vp_data *data, size_t row)
{
	double sum = model->constant;

	for (size_t j = 0; j < model->inputs.at.count; j++)
		sum += model->terms[j].coefficient * vp_input_value(&model->inputs, j, data, row);
	return sum;
}

double vp_linear_leverage(const struct vp_linear *model, const struct vp_data *data, size_t row)
{
	size_t k = model->inputs.at.count;
	VP_AUTO_FREE double *z = vp_alloc((k + 1) * sizeof(*z));

	for (size_t j = 0; j < k; j++)
		z[j] = (vp_input_value(&model->inputs, j, data, row) - model->terms[j].mean) /
		       model->terms[j].sd;
	return 1 / (double)model->rows + vp_lstsq_leverage(&model->fit, z);
}

static void *linear_learn(const void *options, const struct vp_data *data, const uint32_t *rows,
			  size_t n)
{
	return vp_linear_build(data, rows, n, options);
}

static double linear_predict(const void *model, const struct vp_data *data, size_t row)
{
	return vp_linear_row(model, data, row);
}

static void linear_forget(void *model)
{
	vp_linear_free(model);
}

struct vp_learner vp_linear_learner(const struct vp_linear_options *options)
{
	return (struct vp_learner){linear_learn, linear_predict, linear_forget, options,
				   .any_order = true};
}
