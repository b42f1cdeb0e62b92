/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/call_tree.h"

#include "analyze/profile/totals.h"
#include "base/macros.h"

uint32_t vp_call_path(const struct vp_profile *profile, uint32_t node, uint32_t *rows,
		      uint32_t most)
{
	uint32_t count = 0;

	for (uint32_t at = node; at != VP_NONE && count < most; at = profile->nodes.at[at].parent)
		rows[count++] = profile->nodes.at[at].row;
	for (uint32_t i = 0; i < count / 2; i++) {
		uint32_t row = rows[i];
		rows[i] = rows[count - 1 - i];
		rows[count - 1 - i] = row;
	}
	return count;
}

static uint32_t add_call(struct vp_call_tree *tree, uint32_t row)
{
	vp_vec_push(&tree->calls,
		    ((struct vp_call){.row = row, .first = VP_NONE, .next = VP_NONE}));
	return (uint32_t)tree->calls.count - 1;
}

/* The branch of `call` to that row, added if new. */
static uint32_t branch_of(struct vp_call_tree *tree, uint32_t call, uint32_t row)
{
	uint32_t at = tree->calls.at[call].first;

	for (; at != VP_NONE; at = tree->calls.at[at].next)
		if (tree->calls.at[at].row == row)
			return at;
	uint32_t added = add_call(tree, row);
	tree->calls.at[added].next = tree->calls.at[call].first;
	tree->calls.at[call].first = added;
	return added;
}

/* Adds a path that starts with the tree's own row. */
static void add_path(struct vp_call_tree *tree, const uint32_t *rows, int step, uint32_t count,
		     uint64_t samples)
{
	uint32_t call = tree->calls.count ? 0 : add_call(tree, rows[0]);

	tree->calls.at[call].samples += samples;
	for (uint32_t i = 1; i < count; i++) {
		call = branch_of(tree, call, rows[(int)i * step]);
		tree->calls.at[call].samples += samples;
	}
}

/* Removes branches below the minimum and sorts the others; few remain per node. */
static void sort_branches(struct vp_call_tree *tree, uint32_t call, uint64_t least)
{
	uint32_t sorted = VP_NONE, next;

	for (uint32_t at = tree->calls.at[call].first; at != VP_NONE; at = next) {
		struct vp_call *branch = &tree->calls.at[at];
		uint32_t *link = &sorted;
		next = branch->next;
		if (branch->samples < least)
			continue;
		while (*link != VP_NONE && tree->calls.at[*link].samples >= branch->samples)
			link = &tree->calls.at[*link].next;
		branch->next = *link;
		*link = at;
	}
	tree->calls.at[call].first = sorted;
}

void vp_call_tree_make(const struct vp_profile *profile, uint32_t row, enum vp_call_order order,
		       uint64_t least, struct vp_call_tree *ret)
{
	uint32_t rows[VP_CALL_PATH_MAX];

	*ret = (struct vp_call_tree){0};
	for (uint32_t node = 0; node < profile->nodes.count; node++) {
		const struct vp_profile_node *leaf = &profile->nodes.at[node];
		if (!leaf->samples || (order == VP_CALL_CALLEE && leaf->row != row))
			continue;
		uint32_t count = vp_call_path(profile, node, rows, VP_CALL_PATH_MAX), first = 0;
		if (order == VP_CALL_CALLEE) {
			add_path(ret, rows + count - 1, -1, count, leaf->samples);
			continue;
		}
		while (first < count && rows[first] != row)
			first++;
		if (first < count)
			add_path(ret, rows + first, 1, count - first, leaf->samples);
	}
	for (uint32_t call = 0; call < ret->calls.count; call++)
		sort_branches(ret, call, least);
}

void vp_call_tree_deinit(struct vp_call_tree *tree)
{
	vp_vec_deinit(&tree->calls);
}
