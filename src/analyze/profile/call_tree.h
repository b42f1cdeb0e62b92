/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Callers or callees of a row: the stacks of the profile that contain the row. */
#ifndef VP_ANALYZE_PROFILE_CALL_TREE_H
#define VP_ANALYZE_PROFILE_CALL_TREE_H

#include "analyze/profile/profile.h"
#include "base/vec.h"

/* Towards whom the tree grows, as perf calls it: callee shows callers below a row, caller callees.
 */
enum vp_call_order { VP_CALL_CALLEE, VP_CALL_CALLER };

struct vp_call {
	uint32_t row;
	uint64_t samples;
	uint32_t first, next; /* of its branches, most samples first; the next one; VP_NONE: none */
};

struct vp_call_tree {
	VP_VEC(struct vp_call) calls; /* the first is the row itself; empty: it has no stacks */
};

/*
 * VP_CALL_CALLEE: of the stacks that end in the row, from it outwards; VP_CALL_CALLER: of those
 * that go through it, from its outermost frame inwards. Branches below `least` samples are left
 * out.
 */
void vp_call_tree_make(const struct vp_profile *profile, uint32_t row, enum vp_call_order order,
		       uint64_t least, struct vp_call_tree *ret);
void vp_call_tree_deinit(struct vp_call_tree *tree);

/* The rows of a node's stack, outermost first, into `rows`; returns how many. At most `most`. */
uint32_t vp_call_path(const struct vp_profile *profile, uint32_t node, uint32_t *rows,
		      uint32_t most);
enum { VP_CALL_PATH_MAX = 512 };

#endif
