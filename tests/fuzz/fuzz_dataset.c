/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A data set or a saved tree from anybody: read it, and learn from it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "stats/linear.h"
#include "table/model_file.h"
#include "table/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* More would only be slow. */
enum { MAX_INPUTS = 64, MAX_ROWS = 2000 };

static void learn(const struct vp_data *data)
{
	static const struct vp_m5_options tree_options = {.minimum = 4};
	static const struct vp_linear_options linear_options = {0};
	size_t n, inputs = 0;
	VP_AUTO_FREE uint32_t *rows = vp_data_known_rows(data, &n);

	vp_vec_each (&data->columns, column)
		inputs += 1 + column->labels.count;
	if (!n || inputs > MAX_INPUTS || n > MAX_ROWS ||
	    data->columns.at[data->target].type != VP_DATA_NUMERIC)
		return;
	struct vp_m5 *tree = vp_m5_build(data, rows, n, &tree_options);
	if (tree->root->rows != n)
		abort();
	for (size_t row = 0; row < data->rows; row++)
		vp_m5_predict(tree, data, row);
	vp_m5_free(tree);
	struct vp_linear *linear = vp_linear_build(data, rows, n, &linear_options);
	if (linear->rank > linear->inputs.at.count)
		abort();
	vp_linear_group(linear, data);
	vp_linear_free(linear);
}

/* What is read is in bounds, whatever was written. */
static void check(const struct vp_data *data)
{
	vp_vec_each (&data->columns, column)
		for (size_t row = 0; row < data->rows; row++) {
			double value = column->values[row];
			if (isinf(value) || (column->type == VP_DATA_NOMINAL && !isnan(value) &&
					     !(value >= 0 && value < (double)column->labels.count)))
				abort();
		}
}

static void read_data(const char *path)
{
	struct vp_data data;
	struct vp_error *error = vp_dataset_read(path, &data);

	if (!error) {
		check(&data);
		learn(&data);
		vp_data_deinit(&data);
	}
	vp_error_free(error);
}

static void read_model(const char *path)
{
	struct vp_data schema, aligned;
	struct vp_m5 *tree;
	struct vp_error *error = vp_model_load(path, &tree, &schema);

	if (error) {
		vp_error_free(error);
		return;
	}
	struct vp_data one = {.name = vp_strdup(""), .rows = 1};
	vp_vec_each (&schema.columns, column) {
		struct vp_column *copy =
		    vp_data_column_add(&one, vp_strdup(column->name), column->type);
		copy->values = vp_alloc(sizeof(double));
		copy->values[0] = NAN;
	}
	error = vp_model_align(&schema, &one, path, &aligned);
	if (!error) {
		vp_m5_predict(tree, &aligned, 0);
		vp_data_deinit(&aligned);
	}
	vp_error_free(error);
	vp_data_deinit(&one);
	vp_data_deinit(&schema);
	vp_m5_free(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char path[64];
	int fd = memfd_create("data", MFD_CLOEXEC);

	if (fd < 0 || vp_fd_write_all(fd, bytes, size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_data(path);
	read_model(path);
	close(fd);
	return 0;
}
