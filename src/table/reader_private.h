/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts shared by the ARFF and CSV readers. */
#ifndef VP_TABLE_READER_PRIVATE_H
#define VP_TABLE_READER_PRIVATE_H

#include <stdio.h>

#include "base/buffer.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "stats/data.h"
#include "table/reader.h"

/* Limits of columns and of labels of a column. */
enum { VP_TABLE_MAX_COLUMNS = 65536, VP_TABLE_MAX_LABELS = 65536 };
#define VP_TABLE_MAX_ROWS 0x7fffffffU

struct vp_dataset_reader {
	FILE *file;
	const char *path;
	struct vp_data *data;
	char *line; /* without its newline; NULL before the first */
	size_t line_room, line_size;
	size_t number;                   /* line number, from 1 */
	VP_VEC(struct vp_intern) labels; /* per column */
	VP_VEC(char *) dates;            /* per column, NULL: not a date */
	size_t room;                     /* number of rows for which the columns have memory */
};

/* Reads the next line; *line is set to false at the end of the file. */
struct vp_error *vp_dataset_line(struct vp_dataset_reader *reader, bool *line) VP_MUST_CHECK;
/* Adds a column; takes over `name`. */
void vp_dataset_column(struct vp_dataset_reader *reader, char *name, enum vp_data_type type);
/* Allocates one more row. */
struct vp_error *vp_dataset_row(struct vp_dataset_reader *reader) VP_MUST_CHECK;
/* The error for a row with `found` values instead of one per column. */
struct vp_error *vp_dataset_not_row(const struct vp_dataset_reader *reader,
				    size_t found) VP_MUST_CHECK;
/* Parses a whole text as a finite decimal number with `point` as its decimal point; false if it is
 * not one. */
bool vp_dataset_number(const char *text, char point, double *value);
/* The error for a `text` in that column that is not a number. */
struct vp_error *vp_dataset_not_number(const struct vp_dataset_reader *reader, size_t column,
				       const char *text) VP_MUST_CHECK;
/* The label's number; a new label is added with `add`, otherwise an error. */
struct vp_error *vp_dataset_label(struct vp_dataset_reader *reader, size_t column, const char *text,
				  bool add, double *value) VP_MUST_CHECK;

/* Read the whole file. Errors: a malformed line, no columns, no rows. */
struct vp_error *vp_dataset_read_arff(struct vp_dataset_reader *reader) VP_MUST_CHECK;
struct vp_error *vp_dataset_read_csv(struct vp_dataset_reader *reader) VP_MUST_CHECK;

#endif
