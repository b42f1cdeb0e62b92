/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An answer as rows of typed cells; the columns are data, so that any renderer can print any table.
 */
#ifndef VP_ANALYZE_COMMON_TABLE_H
#define VP_ANALYZE_COMMON_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock_text.h"
#include "base/vec.h"

enum vp_cell_type {
	VP_CELL_TEXT,
	VP_CELL_COUNT,
	VP_CELL_DURATION, /* a count of ns; people see it with a unit */
	VP_CELL_TIME,     /* a count of ns since the recording began; people see the table's
			     clock, or seconds if that is the host's */
	VP_CELL_PERCENT
};

struct vp_table_column {
	const char *key;    /* in machine output */
	const char *header; /* for people; NULL: an old key, in machine output only */
	const char *unit;   /* or "" */
	enum vp_cell_type type;
};

/* The column's type selects the member. */
union vp_cell {
	/* NULL: not known. Owned by whoever the table was made from, or the table. */
	const char *text;
	uint64_t count;
	double percent;
};

/* A count that is not known. */
#define VP_CELL_NO_COUNT UINT64_MAX

struct vp_table {
	VP_VEC(struct vp_table_column) columns;
	VP_VEC(union vp_cell) cells; /* row after row */
	VP_VEC(char *) cleaned;      /* texts that could not be shown as they were */
	struct vp_clock_text clock;  /* of VP_CELL_TIME */
};

void vp_table_deinit(struct vp_table *table);
/* Adds a column; the strings are not copied. */
void vp_table_column_add(struct vp_table *table, const char *key, const char *header,
			 const char *unit, enum vp_cell_type type);
/* Adds a column under the key that an earlier release had: it is in CSV and JSON for one more. */
void vp_table_column_add_old(struct vp_table *table, const char *key, enum vp_cell_type type);
/* Each adds the next cell, row after row, of the type that its column has. Text is not copied,
 * unless it must be escaped for terminals and JSON readers. */
void vp_table_text(struct vp_table *table, const char *text);
void vp_table_count(struct vp_table *table, uint64_t count);
void vp_table_percent(struct vp_table *table, double percent);
/* Number of complete rows. */
size_t vp_table_rows(const struct vp_table *table);
/* Index of the column with that key; the number of columns if no column has it. */
size_t vp_table_column_of(const struct vp_table *table, const char *key);

/* Leaves out all rows but the first `rows`; 0: none. */
void vp_table_limit(struct vp_table *table, uint64_t rows);
/* Sorts rows by the column: numbers largest first, texts in order of the alphabet; equal ones stay
 * in their order. */
void vp_table_sort(struct vp_table *table, size_t column);
/* Copies whose texts stay those of `table`: without old keys; and also without the columns of
 * times, percentages and counts that are 0 in every row. */
void vp_table_without_old(const struct vp_table *table, struct vp_table *ret);
void vp_table_without_zeros(const struct vp_table *table, struct vp_table *ret);
/* The same with those columns only that `shown` has. */
void vp_table_choose(const struct vp_table *table, const bool *shown, struct vp_table *ret);

#endif
