/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/data.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

static void column_deinit(struct vp_column *column)
{
	vp_vec_each (&column->labels, label)
		free(*label);
	vp_vec_deinit(&column->labels);
	free(column->name);
	free(column->values);
}

void vp_data_deinit(struct vp_data *data)
{
	vp_vec_each (&data->columns, column)
		column_deinit(column);
	vp_vec_deinit(&data->columns);
	free(data->name);
	*data = (struct vp_data){0};
}

struct vp_column *vp_data_column_add(struct vp_data *data, char *name, enum vp_data_type type)
{
	vp_vec_push(&data->columns, ((struct vp_column){.name = name, .type = type}));
	return &data->columns.at[data->columns.count - 1];
}

void vp_data_column_remove(struct vp_data *data, size_t index)
{
	column_deinit(&data->columns.at[index]);
	data->columns.count--;
	memmove(&data->columns.at[index], &data->columns.at[index + 1],
		(data->columns.count - index) * sizeof(*data->columns.at));
	data->target -= data->target > index;
}

size_t vp_data_find(const struct vp_data *data, const char *name)
{
	for (size_t i = 0; i < data->columns.count; i++)
		if (!strcmp(data->columns.at[i].name, name))
			return i;
	return VP_DATA_NONE;
}

size_t vp_column_find_label(const struct vp_column *column, const char *label)
{
	for (size_t i = 0; i < column->labels.count; i++)
		if (!strcmp(column->labels.at[i], label))
			return i;
	return VP_DATA_NONE;
}

uint32_t *vp_data_known_rows(const struct vp_data *data, size_t *n)
{
	const double *target = data->columns.at[data->target].values;
	uint32_t *rows = vp_realloc_array(NULL, data->rows, sizeof(*rows));

	*n = 0;
	for (size_t i = 0; i < data->rows; i++)
		if (!isnan(target[i]))
			rows[(*n)++] = (uint32_t)i;
	return rows;
}
