/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slices of pCPUs and vCPUs (tracks.h) from state records instead of host scheduler events: on
 * hypervisors whose VMs are not processes, only vCPUs run on pCPUs. The host is a VM there, and its
 * threads are guest threads. Threads of other guests come from their own events, if an agent sent
 * them.
 */
#ifndef VP_ANALYZE_TRACE_TRACK_STATES_H
#define VP_ANALYZE_TRACE_TRACK_STATES_H

#include "analyze/trace/tracks.h"
#include "base/macros.h"

struct vp_track_states;

struct vp_error *vp_track_states_new(const char *directory, const struct vp_feed *feed,
				     void (*emit)(void *context,
						  const struct vp_track_slice *slice),
				     void *context, struct vp_track_states **ret) VP_MUST_CHECK;
void vp_track_states_free(struct vp_track_states *states);
/* Processes the feed's next event. */
void vp_track_states_take(struct vp_track_states *states, const struct vp_feed_event *event);
/* Call after the last event. */
void vp_track_states_end(struct vp_track_states *states);

#endif
