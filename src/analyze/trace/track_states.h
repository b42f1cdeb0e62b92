/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slices of pCPUs and vCPUs (tracks.h) from state records instead of host scheduler events: on
 * hypervisors whose VMs are not processes, only vCPUs run on pCPUs. The host is a VM there, and its
 * threads are guest threads.
 */
#ifndef VP_ANALYZE_TRACE_TRACK_STATES_H
#define VP_ANALYZE_TRACE_TRACK_STATES_H

#include "analyze/trace/tracks.h"

struct vp_track_states;

struct vp_track_states *
vp_track_states_new(const struct vp_feed *feed,
		    void (*emit)(void *context, const struct vp_track_slice *slice), void *context);
void vp_track_states_free(struct vp_track_states *states);
/* Processes the feed's next event. */
void vp_track_states_take(struct vp_track_states *states, const struct vp_feed_event *event);
/* Call after the last event. */
void vp_track_states_end(struct vp_track_states *states);

#endif
