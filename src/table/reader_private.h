/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the readers of both formats. */
#ifndef VP_TABLE_READER_PRIVATE_H
#define VP_TABLE_READER_PRIVATE_H

#include <stdio.h>

#include "base/buffer.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "stats/data.h"
#include "table/reader.h"

/* Rows are numbered by 32 bits; a label's number is its input's, so there are not many. */
enum { VP_TABLE_MAX_COLUMNS = 65536, VP_TABLE_MAX_LABELS = 65536 };
#define VP_TABLE_MAX_ROWS 0x7fffffffU

struct vp_dataset_reader {
	FILE *file;
	const char *path;
	struct vp_data *data;
	char *line; /* without its end; NULL before the first */
	size_t line_room, line_size;
	size_t number;                   /* of the line, from 1 */
	VP_VEC(struct vp_intern) labels; /* of each column */
	VP_VEC(char *) dates;            /* of each column its format; NULL: it has no dates */
	size_t room;                     /* rows that the columns have room for */
};

/* Reads the next line; *line is false at the end. */
struct vp_error *vp_dataset_line(struct vp_dataset_reader *reader, bool *line) VP_MUST_CHECK;
/* Adds a column; takes over `name`. */
void vp_dataset_column(struct vp_dataset_reader *reader, char *name, enum vp_data_type type);
/* Makes room for one more row. */
struct vp_error *vp_dataset_row(struct vp_dataset_reader *reader) VP_MUST_CHECK;
/* The error that a row has `found` values, which is not the number of columns. */
struct vp_error *vp_dataset_not_row(const struct vp_dataset_reader *reader,
				    size_t found) VP_MUST_CHECK;
/* Whether the whole text is a finite decimal number; `point` is what it has for a point. */
bool vp_dataset_number(const char *text, char point, double *value);
/* The error that `text` in that column is not a number. */
struct vp_error *vp_dataset_not_number(const struct vp_dataset_reader *reader, size_t column,
				       const char *text) VP_MUST_CHECK;
/* The label's number; a new one is added if `add`, else it is an error. */
struct vp_error *vp_dataset_label(struct vp_dataset_reader *reader, size_t column, const char *text,
				  bool add, double *value) VP_MUST_CHECK;

/* Read the whole file from its first line on. Errors: a malformed line, no columns, no rows. */
struct vp_error *vp_dataset_read_arff(struct vp_dataset_reader *reader) VP_MUST_CHECK;
struct vp_error *vp_dataset_read_csv(struct vp_dataset_reader *reader) VP_MUST_CHECK;

#endif
