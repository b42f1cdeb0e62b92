/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts sample records by class: records that differ only in time and address are in the same
 * class. The view is called once for all ticks of a class; their addresses are counted in the
 * tally.
 */
#ifndef VP_ANALYZE_PROFILE_CLASSES_H
#define VP_ANALYZE_PROFILE_CLASSES_H

#include "analyze/profile/flow.h"
#include "analyze/profile/tick_counts.h"
#include "analyze/profile/view.h"
#include "base/macros.h"
#include "timeline/batches.h"

struct vp_classes_setup {
	const struct vp_view_ops *view;
	void *state; /* of the view */
	struct vp_flow *flow;
	struct vp_pass_counts *counts;
	uint64_t from, to; /* only ticks of this time; to 0: no limit */
};

struct vp_classes;

/* The flow's timeline must be at its start and keep no stacks. Objects in `setup` must outlive the
 * classes. */
struct vp_classes *vp_classes_new(const struct vp_classes_setup *setup) VP_MUST_CHECK;
/* Processes the records of the batch and returns their number; *last: latest time so far. */
uint64_t vp_classes_take(struct vp_classes *classes, struct vp_batch *batch, uint64_t *last);
/* Passes all counts to the view; the timeline must be after its last record. */
void vp_classes_close(struct vp_classes *classes);
void vp_classes_free(struct vp_classes *classes);

#endif
