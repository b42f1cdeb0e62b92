/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of all ticks, whatever the view. */
#ifndef VP_ANALYZE_PROFILE_TICK_COUNTS_H
#define VP_ANALYZE_PROFILE_TICK_COUNTS_H

#include "timeline/timeline.h"

struct vp_pass_counts {
	uint64_t samples; /* in the recording: number, independent of their weights */
	/* The rest by weight, in the recording's unit. */
	uint64_t guest_samples;
	uint64_t ticks;        /* of all pCPUs */
	uint64_t late, filled; /* ticks taken late; filled in for idle pCPUs */
	uint64_t no_root;      /* guest samples without CR3 */
};

/* Counts a tick; or `n` that differ in nothing but time and address, and have its weight together.
 */
void vp_pass_counts_add(struct vp_pass_counts *counts, const struct vp_tick *tick, uint64_t n);

#endif
