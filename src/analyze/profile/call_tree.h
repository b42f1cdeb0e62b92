/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call tree of callers or callees of a row, from the stacks that contain it. */
#ifndef VP_ANALYZE_PROFILE_CALL_TREE_H
#define VP_ANALYZE_PROFILE_CALL_TREE_H

#include "analyze/profile/profile.h"
#include "base/vec.h"

/* Direction of the tree, in perf's terms: callee shows callers below a row, caller shows
 * callees. */
enum vp_call_order { VP_CALL_CALLEE, VP_CALL_CALLER };

struct vp_call {
	uint32_t row;
	uint64_t samples;
	uint32_t first, next; /* first branch, sorted by samples; next sibling; VP_NONE: none */
};

struct vp_call_tree {
	VP_VEC(struct vp_call) calls; /* the first is the row itself; empty: no stacks */
};

/*
 * VP_CALL_CALLEE: from stacks that end in the row, outwards; VP_CALL_CALLER: from stacks that
 * contain it, from its outermost frame inwards. Branches with fewer than `least` samples are left
 * out.
 */
void vp_call_tree_make(const struct vp_profile *profile, uint32_t row, enum vp_call_order order,
		       uint64_t least, struct vp_call_tree *ret);
void vp_call_tree_deinit(struct vp_call_tree *tree);

/* Writes the rows of a node's stack, outermost first, to `rows`, at most `most`; returns their
 * number. */
uint32_t vp_call_path(const struct vp_profile *profile, uint32_t node, uint32_t *rows,
		      uint32_t most);
enum { VP_CALL_PATH_MAX = 512 };

#endif
