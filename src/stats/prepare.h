/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Converts a data set to model inputs as WEKA's M5P does: missing values are replaced, labels
 * become 0/1 columns, constant columns are dropped. A conversion learnt from some rows can be
 * applied to others.
 */
#ifndef VP_STATS_PREPARE_H
#define VP_STATS_PREPARE_H

#include <math.h>

#include "base/vec.h"
#include "stats/data.h"

/* A numeric column derived from a column of the data set. */
struct vp_input {
	char *name;
	size_t column;
	/* For a nominal column: 1 if the label's rank is at least `rank`, otherwise 0. */
	bool nominal;
	uint32_t rank;
};

struct vp_inputs {
	VP_VEC(struct vp_input) at;
	double *replacement; /* per column of the data set: substitute for missing values */
	uint32_t **ranks;    /* per nominal column: rank of each label by the target's mean */
	size_t columns;
};

/* Numbers by column; `order`: rows to use. */
struct vp_matrix {
	const double **x; /* per input; may point into the data set */
	double **owned;
	const double *y;
	size_t n_inputs;
};

/* Learns the conversion from `n` rows with a known target, in that order. */
void vp_inputs_learn(struct vp_inputs *inputs, const struct vp_data *data, const uint32_t *rows,
		     size_t n);
void vp_inputs_deinit(struct vp_inputs *inputs);
/* The value of an input for a row of a data set with the same columns. */
static inline double vp_input_value(const struct vp_inputs *inputs, size_t input,
				    const struct vp_data *data, size_t row)
{
	const struct vp_input *way = &inputs->at.at[input];
	double value = data->columns.at[way->column].values[row];

	if (isnan(value))
		value = inputs->replacement[way->column];
	if (way->nominal)
		value = inputs->ranks[way->column][(size_t)value] >= way->rank;
	return value;
}

/* All rows of the data set as inputs; unchanged columns are not copied. */
void vp_matrix_init(struct vp_matrix *matrix, const struct vp_inputs *inputs,
		    const struct vp_data *data);
void vp_matrix_deinit(struct vp_matrix *matrix);

#endif
