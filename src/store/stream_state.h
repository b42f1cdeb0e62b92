/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lasting state from records of a stream: names of threads, the account's losses. It is kept, in
 * bounded memory, when the records themselves are overwritten. Clock records are no state: there is
 * one each second. */
#ifndef VP_STORE_STREAM_STATE_H
#define VP_STORE_STREAM_STATE_H

#include "base/buffer.h"
#include "schema/records.h"

struct vp_stream_state {
	struct vp_task *tasks;             /* by the last bits of the thread's number */
	struct vp_guest_task *guest_tasks; /* by VM and thread, hashed */
	uint32_t last_tid;                 /* of the last of `tasks` */
	struct vp_account_loss loss;       /* the last one; id 0: none */
};

void vp_stream_state_deinit(struct vp_stream_state *state);
/* A deep copy. */
struct vp_stream_state vp_stream_state_copy(const struct vp_stream_state *state);
/* Takes note of a record of any kind. */
void vp_stream_state_see(struct vp_stream_state *state, const struct vp_record_header *record);
/* Appends records with the same state, of the time `now`; returns their number. */
uint64_t vp_stream_state_put(const struct vp_stream_state *state, uint64_t now,
			     struct vp_buffer *out);

#endif
