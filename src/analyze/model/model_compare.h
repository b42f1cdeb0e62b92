/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The same work native and virtualized: what makes the target's mean larger. */
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
	double path[VP_SIDES];                   /* length: rows, or the sum of a column */
	double correlation[VP_SIDES];            /* of each side's linear model, on its own rows */
	VP_VEC(struct vp_compared_group) groups; /* the last one is the constant */
};

/* The column of 0 (native) and 1 in merged data. */
#define VP_MERGED_COLUMN "virtualized"

/*
 * One data set of both: a column that only one of them has is 0 in the other. The target is the
 * native data's. `paths` name the files in errors. Errors: columns of different types.
 */
struct vp_error *vp_comparison_merge(const struct vp_data *sides, const char *const *paths,
				     struct vp_data *merged) VP_MUST_CHECK;
/* Adds the column of 0 and 1, in front. */
void vp_comparison_mark(struct vp_data *merged, size_t native_rows);
/*
 * Fits a linear model to each side. `groups_path` as for vp_model_groups_read(), or NULL;
 * `path_column` is summed for the path length; NULL: rows count.
 */
struct vp_error *vp_comparison_init(struct vp_comparison *comparison, const struct vp_data *merged,
				    size_t native_rows, const struct vp_linear_options *options,
				    const char *groups_path, const char *path_column) VP_MUST_CHECK;
void vp_comparison_deinit(struct vp_comparison *comparison);

#endif
