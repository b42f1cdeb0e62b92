/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits a recording into segments that can be processed independently: each is a timeline that
 * starts in the state in which the previous one ends. */
#ifndef VP_TIMELINE_SEGMENT_H
#define VP_TIMELINE_SEGMENT_H

#include "schema/vm.h"
#include "store/trace_reader.h"
#include "timeline/survey.h"
#include "timeline/timeline.h"

/* Computes boundaries of `count` segments of equal cost: writes count - 1 ascending times. Later
 * segments are shorter, because the records before them are surveyed. False: not possible. */
bool vp_segments_cut(const vp_stream_readers *streams, size_t count, uint64_t *cuts);

/* A segment: records from `from` (0: start) up to `until` (0: end), exclusive; and the state that
 * those before them leave. */
struct vp_segment {
	uint64_t from, until;
	struct vp_survey_needs needs;
};

/* Like vp_timeline_init(), for the records of a segment. The streams must be at their start. */
void vp_segment_init(struct vp_timeline *timeline, const struct vp_recording *recording,
		     vp_vms *vms, const vp_stream_readers *streams,
		     const struct vp_segment *segment);

/* Digest of a timeline's state; equal digests mean equal continuations. */
uint64_t vp_segment_digest(const struct vp_timeline *timeline);

#endif
