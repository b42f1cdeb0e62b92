/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Limits accounting records to a window. A record has sums over about a second. If the borders are
 * steps of the accounting, no record is divided. Otherwise those at the borders are divided by the
 * recording's events, or in proportion to time where they have none, and the maximum error is kept.
 * The parts of adjacent windows sum to the whole.
 */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_WINDOW_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/account/account_cuts.h"
#include "analyze/common/window.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"

/* The time covered by a vCPU's last record. */
struct vp_account_segment {
	uint64_t time; /* of the record */
	uint64_t begin, end;
};

struct vp_account_window {
	struct vp_window window;
	bool by_steps; /* its borders are steps (analyze/account/account_steps.h): no record is cut
			*/
	struct vp_account_cuts *cuts; /* owned by the caller; NULL: no events */
	struct vp_map index_of_vcpu;  /* value: index in `segments`, by vCPU */
	VP_VEC(struct vp_account_segment) segments;
	uint64_t before, now; /* times of the last two writes of records */
	/* Maximum errors, ns: of a vCPU's state, of a thief's time, of a part of exits. */
	uint64_t state_error, theft_error, exit_error;
	uint64_t count_error; /* of a count without events, divided in proportion to time */
};

union vp_account_record {
	struct vp_record_header header;
	struct vp_vcpu_account times;
	struct vp_exit_account exits;
	struct vp_exit_bucket bucket;
	struct vp_exit_sampling sampling;
	struct vp_thief thief;
};

void vp_account_window_deinit(struct vp_account_window *window);
/* Whether events divide the records at its borders. */
bool vp_account_window_has_events(const struct vp_account_window *window);
/* The part of the record in the window: `record`, a modified copy in *ret, or NULL. */
const struct vp_record_header *vp_account_window_cut(struct vp_account_window *window,
						     const struct vp_record_header *record,
						     union vp_account_record *ret);

#endif
