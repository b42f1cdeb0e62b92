/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of all ticks, independent of the view. */
#ifndef VP_ANALYZE_PROFILE_TICK_COUNTS_H
#define VP_ANALYZE_PROFILE_TICK_COUNTS_H

#include "timeline/timeline.h"

struct vp_pass_counts {
	uint64_t samples; /* number of samples in the recording, not weighted */
	/* The rest is weighted, in the recording's unit. */
	uint64_t guest_samples;
	uint64_t ticks;        /* of all pCPUs */
	uint64_t late, filled; /* late ticks; ticks filled in for idle pCPUs */
	uint64_t no_root;      /* guest samples without CR3 */
};

/* Counts a tick, or `n` ticks that differ only in time and address, with their total weight. */
void vp_pass_counts_add(struct vp_pass_counts *counts, const struct vp_tick *tick, uint64_t n);
void vp_pass_counts_merge(struct vp_pass_counts *counts, const struct vp_pass_counts *from);

#endif
