/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flight recorder of a session: triggers and snapshots. */
#ifndef VP_SESSION_SESSION_FLIGHT_H
#define VP_SESSION_SESSION_FLIGHT_H

#include "base/macros.h"
#include "session/instrument.h"

/* For a session with options.flight; otherwise all functions do nothing. Errors: a trigger that
 * this kernel does not support. */
struct vp_error *vp_session_flight_open(struct vp_session *session) VP_MUST_CHECK;
/* The triggers, for an instrument whose records they are evaluated by; NULL: none. */
struct vp_condition_watch *vp_session_condition_watch(const struct vp_session *session);
/* Called when the instruments are open and the session's directory exists. Errors: no memory for
 * records, a trigger without its data source. */
struct vp_error *vp_session_flight_listen(struct vp_session *session) VP_MUST_CHECK;
void vp_session_flight_free(struct vp_session *session);
/* Arms the triggers. */
void vp_session_flight_start(struct vp_session *session);
/* Appends descriptors that are readable when vp_session_flight_step() must be called; returns the
 * maximum wait. */
enum { VP_FLIGHT_FDS = 2 };
int vp_session_flight_wait(const struct vp_session *session, int timeout_ms, int fds[VP_FLIGHT_FDS],
			   size_t *n_fds);
/* Takes due snapshots. */
void vp_session_flight_step(struct vp_session *session);
/* Called once a second, after the accounting was written up to `now`. */
void vp_session_flight_mark(struct vp_session *session, uint64_t now);
/* At the end, after all records were flushed: writes the last snapshot as the recording itself;
 * sets its start and totals. */
struct vp_error *vp_session_flight_finish(struct vp_session *session) VP_MUST_CHECK;

#endif
