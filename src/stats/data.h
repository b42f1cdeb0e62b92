/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A data set: columns of numbers or label numbers, all of the same length. */
#ifndef VP_STATS_DATA_H
#define VP_STATS_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum vp_data_type { VP_DATA_NUMERIC, VP_DATA_NOMINAL };

struct vp_labels {
	char **at;
	size_t count;
	size_t room;
};

struct vp_column {
	char *name;
	enum vp_data_type type;
	struct vp_labels labels; /* of a nominal column: values are indices into them */
	size_t line;    /* line of the file that shows that it is nominal; 0: not from a file */
	double *values; /* NaN: missing */
};

struct vp_data {
	char *name;
	VP_VEC(struct vp_column) columns;
	size_t rows;
	size_t target; /* index of the target column */
};

/* No such column or label. */
#define VP_DATA_NONE SIZE_MAX

/* Frees the names, labels and values. */
void vp_data_deinit(struct vp_data *data);
/* Adds a column without values, taking over `name`. */
struct vp_column *vp_data_column_add(struct vp_data *data, char *name, enum vp_data_type type);
/* Removes a column; the target index is adjusted. */
void vp_data_column_remove(struct vp_data *data, size_t index);
/* The index of the column or label with that name, or VP_DATA_NONE. */
size_t vp_data_find(const struct vp_data *data, const char *name);
size_t vp_column_find_label(const struct vp_column *column, const char *label);
/* Ascending numbers of the rows with a known target; the caller frees them. */
uint32_t *vp_data_known_rows(const struct vp_data *data, size_t *n);

#endif
