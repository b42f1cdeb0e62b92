/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares the same work native and virtualized: contributions to the larger mean of the target. */
#ifndef VP_ANALYZE_MODEL_MODEL_COMPARE_H
#define VP_ANALYZE_MODEL_MODEL_COMPARE_H

#include "analyze/model/model_groups.h"
#include "base/macros.h"
#include "base/vec.h"

enum { VP_NATIVE, VP_VIRTUAL, VP_SIDES };

struct vp_compared_group {
	char *name;
	double part[VP_SIDES]; /* in the target's unit */
};

struct vp_comparison {
	char *target;
	size_t rows[VP_SIDES];
	double mean[VP_SIDES];
	double path[VP_SIDES];                   /* path length: rows, or the sum of a column */
	double correlation[VP_SIDES];            /* of each side's linear model, on its own rows */
	VP_VEC(struct vp_compared_group) groups; /* the last one is the constant */
};

/* Column in merged data: 0 (native) or 1. */
#define VP_MERGED_COLUMN "virtualized"

/* One data set of both: columns missing on one side are 0 there. The target is that of the native
 * data. `paths` name the files in errors. Errors: columns of different types. */
struct vp_error *vp_comparison_merge(const struct vp_data *sides, const char *const *paths,
				     struct vp_data *merged) VP_MUST_CHECK;
/* Adds the 0/1 column as the first one. */
void vp_comparison_mark(struct vp_data *merged, size_t native_rows);
/* Fits a linear model to each side. `groups_path` as for vp_model_groups_read(), or NULL.
 * `path_column`: its sum is the path length; NULL: the number of rows. */
struct vp_error *vp_comparison_init(struct vp_comparison *comparison, const struct vp_data *merged,
				    size_t native_rows, const struct vp_linear_options *options,
				    const char *groups_path, const char *path_column) VP_MUST_CHECK;
void vp_comparison_deinit(struct vp_comparison *comparison);

#endif
