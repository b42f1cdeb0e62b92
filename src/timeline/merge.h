/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The streams of a trace as one, in order of time: a tournament. Each inner node of a tree whose
 * leaves are the streams holds the loser of its match, so that the next record of the stream that
 * won costs one comparison per level.
 */
#ifndef VP_TIMELINE_MERGE_H
#define VP_TIMELINE_MERGE_H

#include <stdint.h>

#include "store/trace_reader.h"

struct vp_merge_head {
	uint64_t time;
	uint32_t stream; /* index in the trace's streams */
	const struct vp_record_header *record;
};

struct vp_merge {
	const vp_stream_readers *streams; /* the caller's */
	struct vp_merge_head *heads;      /* by stream; one that ended has no record */
	uint32_t *losers;                 /* by node from 1 on: streams; leaves follow the nodes */
	uint32_t count;                   /* of streams */
	uint32_t winner;                  /* the stream with the smallest time */
	bool taken; /* the winner's record was handed out: it has to move on */
};

/* `heads`: by stream, its first record (NULL: none), if these were read already; else NULL. */
void vp_merge_init(struct vp_merge *merge, const vp_stream_readers *streams,
		   const struct vp_record_header *const *heads);
void vp_merge_deinit(struct vp_merge *merge);
/* Goes on at the heads as they are now: whoever took others than the merge's next one set them. */
void vp_merge_resume(struct vp_merge *merge);
/* Every head is a record that was not handed out yet. */
void vp_merge_pause(struct vp_merge *merge);
/* The stream's next record is its head. */
void vp_merge_advance(struct vp_merge *merge, uint32_t stream);
/* The next record of all streams, or NULL at the end; valid until the next call. */
const struct vp_merge_head *vp_merge_next(struct vp_merge *merge);

#endif
