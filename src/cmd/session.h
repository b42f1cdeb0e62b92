/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the verbs that record do from the start to the end, beside the user's command. */
#ifndef VP_CMD_SESSION_H
#define VP_CMD_SESSION_H

#include "cmd/command.h"

/* A recorder of some kind. */
struct vp_session {
	const char *verb;
	uint64_t duration; /* s; 0: until COMMAND ends or Ctrl-C */
	bool quiet;        /* no progress, no summary */
	const char *output;
	void *recorder;
	struct vp_error *(*start)(void *recorder);
	/* Waits so long at most, and writes what there is. */
	struct vp_error *(*step)(void *recorder, int timeout_ms);
	struct vp_error *(*finish)(void *recorder);
	/* A sentence to be freed, or NULL. */
	char *(*take_notice)(void *recorder);
	/* What there is by now ("12 samples, 0 lost"), to be freed. */
	char *(*totals)(void *recorder);
};

/*
 * Records until the command or the duration ends, or the user stops it; notices, progress and a
 * summary go to stderr. `*status` is the command's, as waitpid() gives it.
 */
struct vp_error *vp_session_record(const struct vp_session *session, struct vp_command *command,
				   int *status) VP_MUST_CHECK;

#endif
