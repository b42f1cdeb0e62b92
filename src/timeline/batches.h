/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the records of all streams in an order that gives the same counts as strict time order, but
 * faster: many records of one stream, then of the next, as long as none of them affects records of
 * other streams (vp_timeline_is_of_all()). Around a record that does, records are merged one by one
 * in time order.
 */
#ifndef VP_TIMELINE_BATCHES_H
#define VP_TIMELINE_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "timeline/timeline.h"

/* Consecutive whole records of one stream. */
struct vp_batch {
	uint32_t stream;
	const char *at, *end;
	uint64_t through; /* only records up to this time */
};

/* The rest of a stream's current packet. */
struct vp_ahead {
	bool scanned;
	uint64_t event; /* time of the first record that affects other streams; UINT64_MAX: none */
	uint64_t last;  /* latest time of all records: an untrusted stream may be out of order */
	/* The last packet that was known to affect no other stream as a whole, and
	 * vp_timeline_changes() at that time. */
	bool is_clean;
	uint32_t clean, changes;
};

struct vp_batches {
	struct vp_timeline *timeline;
	struct vp_ahead *ahead;  /* by stream */
	struct vp_batch current; /* the batch returned last */
	bool in_order;           /* always merge one by one */
	bool merging;            /* merging one by one now */
	uint32_t changes;        /* vp_timeline_changes() at the last check … */
	uint64_t quiet;          /* … and the number of records since then */
};

/* For a timeline at its start; afterwards its records must be read only through this. */
void vp_batches_init(struct vp_batches *batches, struct vp_timeline *timeline, bool in_order);
void vp_batches_deinit(struct vp_batches *batches);
/* The next batch, or NULL at the end; valid until the next call. The caller processes records from
 * `at` on, and sets `at` to the first one that it did not process. */
struct vp_batch *vp_batches_next(struct vp_batches *batches);
/* Reports the number of records processed from the batch, none later than `last`. */
void vp_batches_taken(struct vp_batches *batches, uint64_t records, uint64_t last);

#endif
