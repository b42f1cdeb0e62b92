/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of all streams in an order that makes no difference to whoever counts them: many of
 * one stream, then of the next, as long as none of them changes what records of other streams are
 * (vp_timeline_is_of_all()); around one that does, one by one in order of time.
 */
#ifndef VP_TIMELINE_BATCHES_H
#define VP_TIMELINE_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "timeline/timeline.h"

/* Records of one stream, whole, in a row. */
struct vp_batch {
	uint32_t stream;
	const char *at, *end;
	uint64_t through; /* only those up to this time */
};

/* The rest of a stream's packet, as far as it is known. */
struct vp_ahead {
	bool looked;
	uint64_t event; /* the first record that matters to others; UINT64_MAX: none does */
	uint64_t last;  /* the latest of all: a hostile stream may not be in order */
};

struct vp_batches {
	struct vp_timeline *timeline;
	struct vp_ahead *ahead; /* by stream */
	struct vp_batch given;  /* the one that was returned last */
	bool in_order;          /* always one by one */
	bool merging;           /* one by one now */
	uint32_t changes;       /* vp_timeline_changes() at the last look … */
	uint64_t quiet;         /* … and how many records had none since */
};

/* For a timeline at its start; its records are read only by this from then on. */
void vp_batches_init(struct vp_batches *batches, struct vp_timeline *timeline, bool in_order);
void vp_batches_deinit(struct vp_batches *batches);
/* The next batch; NULL at the end. It is to be taken record by record from `at` on, which moves to
 * the first that was not; valid until the next call. */
struct vp_batch *vp_batches_next(struct vp_batches *batches);
/* The batch had this many records, none later than `last`. */
void vp_batches_taken(struct vp_batches *batches, uint64_t records, uint64_t last);

#endif
