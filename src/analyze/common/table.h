/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table of typed cells with columns as data, for any renderer. */
#ifndef VP_ANALYZE_COMMON_TABLE_H
#define VP_ANALYZE_COMMON_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock_text.h"
#include "base/vec.h"

enum vp_cell_type {
	VP_CELL_TEXT,
	VP_CELL_COUNT,
	VP_CELL_DURATION, /* count of ns; text output has a unit */
	VP_CELL_TIME, /* count of ns since the start of the recording; text output uses the table's
			 clock, or seconds if that is the host's */
	VP_CELL_PERCENT
};

struct vp_table_column {
	const char *key;    /* name in machine output */
	const char *header; /* heading in text output; NULL: an old key, in machine output only */
	const char *unit;   /* or "" */
	enum vp_cell_type type;
};

/* The column's type selects the member. */
union vp_cell {
	/* NULL: unknown. Owned by the source of the table's data, or by the table. */
	const char *text;
	uint64_t count;
	double percent;
};

/* An unknown count. */
#define VP_CELL_NO_COUNT UINT64_MAX

struct vp_table {
	VP_VEC(struct vp_table_column) columns;
	VP_VEC(union vp_cell) cells; /* row-major */
	VP_VEC(char *) cleaned;      /* cleaned copies of texts */
	struct vp_clock_text clock;  /* for VP_CELL_TIME */
	/* Keys of the columns that a narrow terminal omits first, in this order, up to NULL; or
	 * NULL. */
	const char *const *least;
	const char *whole; /* what has all columns; NULL: "-v shows all" */
};

void vp_table_deinit(struct vp_table *table);
/* Adds a column; the strings are not copied. */
void vp_table_column_add(struct vp_table *table, const char *key, const char *header,
			 const char *unit, enum vp_cell_type type);
/* Adds a column with the key of an earlier release, for CSV and JSON, for one more release. */
void vp_table_column_add_old(struct vp_table *table, const char *key, enum vp_cell_type type);
/* Each adds the next cell, row by row; its type must be that of the column. Text is not copied,
 * unless it must be escaped for terminals and JSON readers. */
void vp_table_text(struct vp_table *table, const char *text);
void vp_table_count(struct vp_table *table, uint64_t count);
void vp_table_percent(struct vp_table *table, double percent);
/* Number of complete rows. */
size_t vp_table_rows(const struct vp_table *table);
/* Index of the column with that key. It must exist, unless the table is empty. */
size_t vp_table_column_of(const struct vp_table *table, const char *key);

/* A copy, whose texts stay owned by `table`, without rows with less than `least` percent in the
 * column `key`. Returns how many are missing. */
size_t vp_table_without_small(const struct vp_table *table, const char *key, double least,
			      struct vp_table *ret);
/* Keeps only the first `rows` rows; 0: no limit. */
void vp_table_limit(struct vp_table *table, uint64_t rows);
/* Sorts rows by the column: numbers descending, texts alphabetically; stable. */
void vp_table_sort(struct vp_table *table, size_t column);
/* Copies whose texts stay owned by `table`: without old keys; and also without columns of times,
 * percentages and counts that are 0 in every row. */
void vp_table_without_old(const struct vp_table *table, struct vp_table *ret);
void vp_table_without_zeros(const struct vp_table *table, struct vp_table *ret);
/* The same with only the columns in `shown`. */
void vp_table_choose(const struct vp_table *table, const bool *shown, struct vp_table *ret);

#endif
