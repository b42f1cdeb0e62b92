/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Merges the streams of a trace in time order, with a tournament tree: the leaves are the streams,
 * and each inner node holds the loser of its match, so that the next record of the winning stream
 * costs one comparison per level.
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
	struct vp_merge_head *heads;      /* by stream; NULL record: the stream has ended */
	uint32_t *losers;                 /* streams by node, from 1 on; leaves follow the nodes */
	uint32_t count;                   /* number of streams */
	uint32_t winner;                  /* the stream with the smallest time */
	uint64_t rival;                   /* the earliest time of the other heads */
	bool head_returned;               /* the winner's record was returned: advance it next */
};

/* `heads`: first record of each stream (NULL: none), if already read; else NULL. */
void vp_merge_init(struct vp_merge *merge, const vp_stream_readers *streams,
		   const struct vp_record_header *const *heads);
void vp_merge_deinit(struct vp_merge *merge);
/* Rebuilds the tree from the present heads, after the caller advanced streams itself. */
void vp_merge_resume(struct vp_merge *merge);
/* Makes every head an unread record, so that the caller can read streams itself. */
void vp_merge_pause(struct vp_merge *merge);
/* Makes the stream's next record its head. */
void vp_merge_advance(struct vp_merge *merge, uint32_t stream);
/* Slow path of vp_merge_next(): another packet, or another stream. */
const struct vp_merge_head *vp_merge_next_slow(struct vp_merge *merge);
/* The next record of all streams, or NULL at the end; valid until the next call. Streams have many
 * records in a row. */
static inline const struct vp_merge_head *vp_merge_next(struct vp_merge *merge)
{
	const struct vp_record_header *record;

	if (!merge->head_returned)
		return vp_merge_next_slow(merge);
	record = vp_stream_next_before(merge->streams->at[merge->winner], merge->rival);
	if (!record)
		return vp_merge_next_slow(merge);
	struct vp_merge_head *head = &merge->heads[merge->winner];
	head->record = record;
	head->time = record->time;
	return head;
}

#endif
