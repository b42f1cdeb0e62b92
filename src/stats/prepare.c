/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/prepare.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "stats/order.h"

static double prepare_mean_of(const double *values, const uint32_t *rows, size_t n)
{
	double sum = 0, count = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(values[rows[i]])) {
			sum += values[rows[i]];
			count++;
		}
	return count > 0 ? sum / count : 0;
}

/* The most frequent label; of equally frequent ones, the first. */
static double prepare_mode_of(const struct vp_column *column, const uint32_t *rows, size_t n)
{
	VP_AUTO_FREE size_t *counts = vp_alloc((column->labels.count + 1) * sizeof(*counts));
	size_t best = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(column->values[rows[i]]))
			counts[(size_t)column->values[rows[i]]]++;
	for (size_t i = 1; i < column->labels.count; i++)
		if (counts[i] > counts[best])
			best = i;
	return (double)best;
}

/* The labels, ascending by the target's mean; a label without rows has the overall mean. */
static struct vp_keyed *order_labels(const struct vp_data *data, const struct vp_column *column,
				     double replacement, const uint32_t *rows, size_t n)
{
	const double *y = data->columns.at[data->target].values;
	size_t labels = column->labels.count;
	struct vp_keyed *sums = vp_alloc((labels + 1) * sizeof(*sums));
	VP_AUTO_FREE double *counts = vp_alloc((labels + 1) * sizeof(*counts));
	double sum = 0, count = 0;

	for (size_t i = 0; i < n; i++) {
		double value = column->values[rows[i]];
		size_t label = (size_t)(isnan(value) ? replacement : value);
		sums[label].value += y[rows[i]];
		counts[label]++;
	}
	for (size_t i = 0; i < labels; i++) {
		sum += sums[i].value;
		count += counts[i];
	}
	for (size_t i = 0; i < labels; i++) {
		sums[i].value = counts[i] > 0 ? sums[i].value / counts[i] : sum / count;
		sums[i].row = (uint32_t)i;
	}
	vp_order_sort(sums, labels);
	return sums;
}

static char *input_name(const struct vp_column *column, const struct vp_keyed *order, size_t rank)
{
	struct vp_buffer name = {0};

	vp_buffer_printf(&name, "%s=", column->name);
	for (size_t i = rank; i < column->labels.count; i++)
		vp_buffer_printf(&name, "%s%s", i > rank ? "," : "",
				 column->labels.at[order[i].row]);
	char *text = vp_strdup(vp_buffer_text(&name));
	vp_buffer_deinit(&name);
	return text;
}

static bool has_two_values(const struct vp_inputs *inputs, size_t input, const struct vp_data *data,
			   const uint32_t *rows, size_t n)
{
	double first = n ? vp_input_value(inputs, input, data, rows[0]) : 0;

	for (size_t i = 1; i < n; i++)
		if (vp_input_value(inputs, input, data, rows[i]) != first)
			return true;
	return false;
}

/* Adds an input unless it is constant. */
static void add_input(struct vp_inputs *inputs, struct vp_input input, const struct vp_data *data,
		      const uint32_t *rows, size_t n)
{
	vp_vec_push(&inputs->at, input);
	if (!has_two_values(inputs, inputs->at.count - 1, data, rows, n))
		free(inputs->at.at[--inputs->at.count].name);
}

static void learn_nominal(struct vp_inputs *inputs, size_t index, const struct vp_data *data,
			  const uint32_t *rows, size_t n)
{
	const struct vp_column *column = &data->columns.at[index];
	size_t labels = column->labels.count;
	VP_AUTO_FREE struct vp_keyed *order =
	    order_labels(data, column, inputs->replacement[index], rows, n);

	inputs->ranks[index] = vp_alloc((labels + 1) * sizeof(**inputs->ranks));
	for (size_t i = 0; i < labels; i++)
		inputs->ranks[index][order[i].row] = (uint32_t)i;
	for (size_t rank = 1; rank < labels; rank++)
		add_input(inputs,
			  (struct vp_input){.name = input_name(column, order, rank),
					    .column = index,
					    .nominal = true,
					    .rank = (uint32_t)rank},
			  data, rows, n);
}

void vp_inputs_learn(struct vp_inputs *inputs, const struct vp_data *data, const uint32_t *rows,
		     size_t n)
{
	size_t columns = data->columns.count;

	*inputs = (struct vp_inputs){.columns = columns};
	inputs->replacement = vp_alloc(columns * sizeof(*inputs->replacement));
	inputs->ranks = vp_alloc(columns * sizeof(*inputs->ranks));
	for (size_t i = 0; i < columns; i++) {
		const struct vp_column *column = &data->columns.at[i];
		if (i == data->target)
			continue;
		inputs->replacement[i] = column->type == VP_DATA_NOMINAL
					     ? prepare_mode_of(column, rows, n)
					     : prepare_mean_of(column->values, rows, n);
		if (column->type == VP_DATA_NOMINAL)
			learn_nominal(inputs, i, data, rows, n);
		else
			add_input(inputs,
				  (struct vp_input){.name = vp_strdup(column->name), .column = i},
				  data, rows, n);
	}
}

void vp_inputs_deinit(struct vp_inputs *inputs)
{
	vp_vec_each (&inputs->at, input)
		free(input->name);
	vp_vec_deinit(&inputs->at);
	for (size_t i = 0; inputs->ranks && i < inputs->columns; i++)
		free(inputs->ranks[i]);
	free(inputs->ranks);
	free(inputs->replacement);
	*inputs = (struct vp_inputs){0};
}

static bool has_missing(const double *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isnan(values[i]))
			return true;
	return false;
}

void vp_matrix_init(struct vp_matrix *matrix, const struct vp_inputs *inputs,
		    const struct vp_data *data)
{
	size_t n = inputs->at.count;

	matrix->n_inputs = n;
	matrix->x = vp_alloc(n * sizeof(*matrix->x));
	matrix->owned = vp_alloc(n * sizeof(*matrix->owned));
	matrix->y = data->columns.at[data->target].values;
	for (size_t i = 0; i < n; i++) {
		const struct vp_input *way = &inputs->at.at[i];
		const double *values = data->columns.at[way->column].values;
		matrix->x[i] = values;
		if (!way->nominal && !has_missing(values, data->rows))
			continue;
		matrix->owned[i] = vp_realloc_array(NULL, data->rows, sizeof(double));
		for (size_t row = 0; row < data->rows; row++)
			matrix->owned[i][row] = vp_input_value(inputs, i, data, row);
		matrix->x[i] = matrix->owned[i];
	}
}

void vp_matrix_deinit(struct vp_matrix *matrix)
{
	for (size_t i = 0; i < matrix->n_inputs; i++)
		free(matrix->owned[i]);
	free(matrix->owned);
	free(matrix->x);
	*matrix = (struct vp_matrix){0};
}
