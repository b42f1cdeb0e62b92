/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data sets from files: ARFF as WEKA reads it, and CSV as spreadsheets write it. */
#ifndef VP_TABLE_READER_H
#define VP_TABLE_READER_H

#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "stats/data.h"

/* Reads a file of either kind; the target is the last column. At least one row and column. */
struct vp_error *vp_dataset_read(const char *path, struct vp_data *data) VP_MUST_CHECK;
/* The same of an open file; `path` is its name in errors. */
struct vp_error *vp_dataset_read_stream(FILE *file, const char *path,
					struct vp_data *data) VP_MUST_CHECK;
/* Data as a CSV file would hold it. */
void vp_dataset_write_csv(const struct vp_data *data, struct vp_buffer *out);
/* The same as an ARFF file: what is missing is a question mark. */
void vp_dataset_write_arff(const struct vp_data *data, struct vp_buffer *out);

#endif
