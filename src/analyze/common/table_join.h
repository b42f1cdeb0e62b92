/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the same table of several recordings to one. */
#ifndef VP_ANALYZE_COMMON_TABLE_JOIN_H
#define VP_ANALYZE_COMMON_TABLE_JOIN_H

#include "analyze/common/table.h"
#include "base/intern.h"
#include "base/vec.h"

/*
 * How rows are joined: rows with the same values in `keys` become one. Its counts and durations are
 * sums, unless another member names the column; of texts, the last known one stays. Lists of
 * columns end with NULL.
 */
struct vp_table_join_rules {
	const char *const *keys; /* NULL: all rows stay */
	const char *const *last; /* columns that have the last table's value; or NULL */
	/* A duration of which the largest stays, with the text that belongs to it; or NULL. */
	const char *most, *most_text;
	/* A percentage: `part` of `whole`, or if that is NULL, of the sum of `part`; or NULL. */
	const char *percent, *part, *whole;
	/* Rows are sorted by the sum of these columns, largest first; NULL: not sorted. */
	const char *const *order;
	const char *buckets; /* a histogram: start of each bucket, a power of two ns; or NULL */
};

/* A list of columns. */
#define VP_TABLE_KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Zero-initialized. */
struct vp_table_join {
	struct vp_table table;  /* the joined table; the caller's */
	struct vp_intern texts; /* of its cells */
	struct vp_intern keys;  /* values of the keys, by number of the row in `row_of` */
	VP_VEC(uint32_t) row_of;
};

/* Adds the rows of `from`, which stays the caller's. All tables have the same columns. */
void vp_table_join_add(struct vp_table_join *join, const struct vp_table_join_rules *rules,
		       const struct vp_table *from);
/* Computes percentages, fills in missing buckets, and sorts. */
void vp_table_join_finish(struct vp_table_join *join, const struct vp_table_join_rules *rules);
/* Frees all, including the table. */
void vp_table_join_deinit(struct vp_table_join *join);

#endif
