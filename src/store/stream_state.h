/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State that earlier records of a stream define for later ones: thread names, losses of the
 * accounting. It is kept in bounded memory when the records are overwritten. Clock records are not
 * part of it: one is written each second.
 */
#ifndef VP_STORE_STREAM_STATE_H
#define VP_STORE_STREAM_STATE_H

#include "base/buffer.h"
#include "schema/records.h"

struct vp_stream_state {
	struct vp_task *tasks;             /* indexed by the low bits of the tid */
	struct vp_guest_task *guest_tasks; /* hash table by VM and thread */
	uint32_t last_tid;                 /* tid of the latest entry of `tasks` */
	struct vp_account_loss loss;       /* the latest one; id 0: none */
};

void vp_stream_state_deinit(struct vp_stream_state *state);
/* A deep copy. */
struct vp_stream_state vp_stream_state_copy(const struct vp_stream_state *state);
/* Updates the state from a record of any type. */
void vp_stream_state_see(struct vp_stream_state *state, const struct vp_record_header *record);
/* Appends records that restore the state at time `now`; returns their number. */
uint64_t vp_stream_state_put(const struct vp_stream_state *state, uint64_t now,
			     struct vp_buffer *out);

#endif
