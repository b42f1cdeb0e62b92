/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Groups of predictors, given by the user or proposed, with their contributions. */
#ifndef VP_ANALYZE_MODEL_MODEL_GROUPS_H
#define VP_ANALYZE_MODEL_MODEL_GROUPS_H

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "stats/linear.h"

struct vp_model_group {
	char *name;
	double contribution; /* percent of the target's mean */
	double part;         /* in the target's unit */
	size_t members;
};

struct vp_model_groups {
	VP_VEC(struct vp_model_group) at;
};

/* Proposes groups from the data, named by their first member and the number of others. */
void vp_model_groups_propose(struct vp_model_groups *groups, struct vp_linear *model,
			     const struct vp_data *data);
/* Reads a file of lines "NAME: COLUMN, COLUMN …"; '#' starts a comment; a column may end in '*' as
 * a wildcard. Other columns are groups of their own. */
struct vp_error *vp_model_groups_read(struct vp_model_groups *groups, const char *path,
				      struct vp_linear *model,
				      const struct vp_data *data) VP_MUST_CHECK;
void vp_model_groups_deinit(struct vp_model_groups *groups);

#endif
