/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Periods of pCPUs and vCPUs (lanes.h) of a recording that tells the states of vCPUs, one after
 * another, instead of the host's scheduler's events: where VMs are no processes, and whoever has a
 * pCPU is a vCPU. The host is a VM there, and its threads are its guest's.
 */
#ifndef VP_ANALYZE_TRACE_LANE_STATES_H
#define VP_ANALYZE_TRACE_LANE_STATES_H

#include "analyze/trace/lanes.h"

struct vp_lane_states;

struct vp_lane_states *
vp_lane_states_new(const struct vp_feed *feed,
		   void (*emit)(void *context, const struct vp_period *period), void *context);
void vp_lane_states_free(struct vp_lane_states *states);
/* The feed's next event. */
void vp_lane_states_take(struct vp_lane_states *states, const struct vp_feed_event *event);
/* After the last one. */
void vp_lane_states_end(struct vp_lane_states *states);

#endif
