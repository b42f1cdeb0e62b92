/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads data sets from ARFF files (as WEKA does) and CSV files (as spreadsheets write them). */
#ifndef VP_TABLE_READER_H
#define VP_TABLE_READER_H

#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "stats/data.h"

/* Reads a file of either kind; the target is the last column. Errors: malformed, or no rows or
 * columns. */
struct vp_error *vp_dataset_read(const char *path, struct vp_data *data) VP_MUST_CHECK;
/* The same for an open file; `path` names it in errors. */
struct vp_error *vp_dataset_read_stream(FILE *file, const char *path,
					struct vp_data *data) VP_MUST_CHECK;
/* Appends the data as CSV. */
void vp_dataset_write_csv(const struct vp_data *data, struct vp_buffer *out);
/* Appends the data as ARFF; missing values are "?". */
void vp_dataset_write_arff(const struct vp_data *data, struct vp_buffer *out);

#endif
