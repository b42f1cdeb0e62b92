/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts records of samples in classes: those that differ in time and address alone are one. The
 * view is asked once for all ticks of a class; their addresses go to the tally.
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
	uint64_t from, to; /* only ticks of this time; to 0: no bound */
};

struct vp_classes;

/* The flow's timeline is at its start and keeps no chains. The objects in `setup` must outlive the
 * classes; free them with vp_classes_free(). */
struct vp_classes *vp_classes_new(const struct vp_classes_setup *setup) VP_MUST_CHECK;
/* Takes the batch's records; *last is the latest time so far. Returns how many they were. */
uint64_t vp_classes_take(struct vp_classes *classes, struct vp_batch *batch, uint64_t *last);
/* Hands everything that was counted to the view; the timeline is as after its last record. */
void vp_classes_close(struct vp_classes *classes);
void vp_classes_free(struct vp_classes *classes);

#endif
