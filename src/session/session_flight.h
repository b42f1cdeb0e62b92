/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session's flight recorder: when snapshots are taken, and what they are. */
#ifndef VP_SESSION_SESSION_FLIGHT_H
#define VP_SESSION_SESSION_FLIGHT_H

#include "base/macros.h"
#include "session/instrument.h"

/* For a session with options.flight; otherwise all do nothing. Errors: a trigger that this kernel
 * does not support. */
struct vp_error *vp_session_flight_open(struct vp_session *session) VP_MUST_CHECK;
/* The session's directory is there now. Errors: no memory for records, no socket. */
struct vp_error *vp_session_flight_listen(struct vp_session *session) VP_MUST_CHECK;
void vp_session_flight_free(struct vp_session *session);
/* Begins to look for the conditions. */
void vp_session_flight_start(struct vp_session *session);
/* Appends what can be read when vp_session_flight_step() is to be called; returns how long to wait
 * for it at most. */
enum { VP_FLIGHT_FDS = 2 };
int vp_session_flight_wait(const struct vp_session *session, int timeout_ms, int fds[VP_FLIGHT_FDS],
			   size_t *n_fds);
/* Takes the snapshots that are due. */
void vp_session_flight_step(struct vp_session *session);
/* Once a second: the account was written up to `now`. */
void vp_session_flight_mark(struct vp_session *session, uint64_t now);
/* At the end, after all is flushed: writes the last snapshot, as the recording itself; sets its
 * start and totals. */
struct vp_error *vp_session_flight_finish(struct vp_session *session) VP_MUST_CHECK;

#endif
