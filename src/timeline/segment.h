/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording cut into stretches of time, each of which can be gone through by itself: a timeline
 * that begins later than the recording, in the state that the one before it ends in.
 */
#ifndef VP_TIMELINE_SEGMENT_H
#define VP_TIMELINE_SEGMENT_H

#include "schema/vm.h"
#include "store/trace_reader.h"
#include "timeline/timeline.h"

/* Computes where to cut into `count` stretches of equal cost: writes count - 1 times, in order.
 * Later ones are shorter, since the records before them are surveyed. False: that is unknown. */
bool vp_segments_cut(const vp_stream_readers *streams, size_t count, uint64_t *cuts);

/* As vp_timeline_init(), for the records from `from` (0: all) up to `until` (0: all), exclusive.
 * The streams are at their start. */
void vp_segment_init(struct vp_timeline *timeline, const struct vp_recording *recording,
		     vp_vms *vms, const vp_stream_readers *streams, uint64_t from, uint64_t until);

/* A number for all that a timeline keeps from tick to tick: two that go on in the same way have the
 * same. */
uint64_t vp_segment_digest(const struct vp_timeline *timeline);

#endif
