/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Periods of pCPUs, vCPUs and guests' threads: a line each. */
#ifndef VP_RENDER_RENDER_LANES_H
#define VP_RENDER_RENDER_LANES_H

#include "analyze/trace/lanes.h"
#include "base/clock_text.h"

struct vp_lanes_layout {
	struct vp_lanes *lanes;     /* names of VMs */
	bool of_threads;            /* the guest's thread is whose the lane is */
	bool is_first;              /* nothing was printed before: JSON has its version */
	struct vp_clock_text clock; /* of times, in text */
	bool in_export; /* JSON lines are of type "period": "slice" is one of the account there */
};

struct vp_lanes_format {
	const char *name;
	/* Before the first period; or NULL. */
	void (*begin)(struct vp_buffer *out);
	void (*period)(const struct vp_period *period, const struct vp_lanes_layout *layout,
		       struct vp_buffer *out);
};

/* text, jsonl or csv; NULL if there is none of that name. */
const struct vp_lanes_format *vp_lanes_format_named(const char *name);

/* "guest", "preempted", …; "exact", "uncertain", NULL if it is not known. */
const char *vp_lane_state_name(enum vp_lane_state state);
const char *vp_lane_certainty_name(enum vp_lane_certainty certainty);

#endif
