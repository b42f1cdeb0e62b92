/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of the file `recording` that have several numbers. */
#ifndef VP_STORE_RECORDED_H
#define VP_STORE_RECORDED_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "schema/agent_outcome.h"
#include "schema/guest_sampling.h"
#include "schema/memory_outcome.h"
#include "schema/snapshot_cause.h"

/* Append the numbers after the line's key, each preceded by a blank. */
void vp_recorded_put_cause(const struct vp_snapshot_cause *cause, struct vp_buffer *out);
void vp_recorded_put_agent(const struct vp_agent_outcome *outcome, struct vp_buffer *out);
void vp_recorded_put_memory(const struct vp_memory_outcome *outcome, struct vp_buffer *out);
void vp_recorded_put_sampling(const struct vp_guest_sampling *sampling, struct vp_buffer *out);
/* Parse the rest of the line. */
void vp_recorded_read_cause(struct vp_cursor *line, struct vp_snapshot_cause *ret);
/* False: unknown request or status (written by a later version). */
bool vp_recorded_read_agent(struct vp_cursor *line, struct vp_agent_outcome *ret) VP_MUST_CHECK;
bool vp_recorded_read_memory(struct vp_cursor *line, struct vp_memory_outcome *ret) VP_MUST_CHECK;
void vp_recorded_read_sampling(struct vp_cursor *line, struct vp_guest_sampling *ret);

#endif
