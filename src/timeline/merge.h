/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The streams of a trace as one, in order of time. */
#ifndef VP_TIMELINE_MERGE_H
#define VP_TIMELINE_MERGE_H

#include <stdint.h>

#include "recording/trace_reader.h"

struct vp_merge_head {
	uint64_t time;
	uint32_t stream; /* index in the trace's streams */
	const struct vp_record_header *record;
};

struct vp_merge {
	const vp_stream_readers *streams; /* the caller's */
	struct vp_merge_head *heap;       /* the smallest time first */
	uint32_t count;
	bool taken; /* the first head was handed out and has to move on */
};

void vp_merge_init(struct vp_merge *merge, const vp_stream_readers *streams);
void vp_merge_deinit(struct vp_merge *merge);
/* The next record of all streams, or NULL at the end; valid until the next call. */
const struct vp_merge_head *vp_merge_next(struct vp_merge *merge);

#endif
