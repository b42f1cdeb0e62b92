/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Number of samples per frame and per stack: the basis of every view. */
#ifndef VP_ANALYZE_PROFILE_TOTALS_H
#define VP_ANALYZE_PROFILE_TOTALS_H

#include "analyze/common/key_set.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/resolve.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "timeline/guests.h"

/* Last exit reason of the vCPU, for ticks of a frame of steal. */
struct vp_profile_reason {
	uint32_t row;
	struct vp_exit exit;
	uint64_t count;
};

/* A node of the tree of stacks: a row, called by the row of its parent. */
struct vp_profile_node {
	uint32_t parent; /* a lower number; VP_NONE: outermost */
	uint32_t row;
	uint64_t samples; /* samples of stacks that end here */
};

/* A view as a whole, or one vCPU of it. */
struct vp_profile_part {
	uint32_t vm;   /* VP_NONE: not of one VM */
	uint32_t vcpu; /* its number; VP_NONE: all */
	uint64_t samples;
	uint64_t kinds[VP_KINDS];
	size_t first_row, rows; /* sorted by samples, descending */
};

typedef VP_VEC(struct vp_profile_reason) vp_profile_reasons;
typedef VP_VEC(struct vp_profile_node) vp_profile_nodes;
typedef VP_VEC(struct vp_profile_part) vp_profile_parts;

struct vp_totals {
	vp_profile_parts parts;
	vp_profile_reasons reasons; /* `row` is the number of a frame */
	struct vp_map reason_of;
	uint64_t routes[VP_ROUTES];
	uint64_t unattributed;
	VP_VEC(uint64_t) samples; /* by frame; a compact array, because each sample adds here */

	/* The tree of stacks; nodes are numbered by key (parent, frame). */
	struct vp_key_set node_keys;
	VP_VEC(uint64_t) ended;   /* by node: samples */
	VP_VEC(uint64_t) within;  /* by frame: samples with it anywhere in the stack */
	VP_VEC(uint64_t) seen_in; /* by frame: number of the last stack with it */
	uint64_t stacks;
};

void vp_totals_init(struct vp_totals *totals);
void vp_totals_deinit(struct vp_totals *totals);
/* Counts `weight` samples in a frame; in a stack of `count` frames, outermost first. */
void vp_totals_add(struct vp_totals *totals, uint32_t frame, uint64_t weight);
/* Counts a named sample; `by_frame`: also for each frame of its stack. */
void vp_totals_take(struct vp_totals *totals, const struct vp_resolved *samples, uint32_t count,
		    bool by_frame);
void vp_totals_add_stack(struct vp_totals *totals, const uint32_t *frames, uint32_t count,
			 uint64_t weight);
/* Makes one-frame stacks of frames counted without a stack. Call it at the end if stacks were
 * counted. */
void vp_totals_close_stacks(struct vp_totals *totals);
/* Node number N of the tree; its row is the number of a frame. */
struct vp_profile_node vp_totals_node(const struct vp_totals *totals, uint32_t node);
/* Adds the parts of `from`, without samples; returns an array that maps them, to be freed. `vm_of`
 * maps the numbers of its VMs; NULL: they are the same. */
uint32_t *vp_totals_merge_parts(struct vp_totals *totals, const struct vp_totals *from,
				const uint32_t *vm_of) VP_MUST_CHECK;
/* Adds the counts of `from`, with its parts and frames mapped to these numbers. Either both have
 * closed their stacks, or neither. */
void vp_totals_merge(struct vp_totals *totals, const struct vp_totals *from,
		     const uint32_t *part_of, const uint32_t *frame_of);
/* The index of (frame, reason) in `reasons`. */
uint32_t vp_totals_reason(struct vp_totals *totals, uint32_t frame, const struct vp_exit *exit);

#endif
