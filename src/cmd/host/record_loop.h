/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop of the recording commands, from start to end, in parallel with the user's command. */
#ifndef VP_CMD_HOST_RECORD_LOOP_H
#define VP_CMD_HOST_RECORD_LOOP_H

#include "base/macros.h"
#include "cmd/common/command.h"
#include "cmd/host/record_targets.h"
#include "session/session.h"

struct vp_record_loop {
	const char *verb;
	uint64_t duration_ns; /* 0: until COMMAND ends or Ctrl-C */
	bool quiet;           /* no progress, no summary */
	const char *output;
	struct vp_session *session;        /* open */
	struct vp_record_targets *targets; /* the end of all of them is the recording's; or NULL */
};

/*
 * Records until the command, the targets or the duration end, or the user stops it; notices,
 * progress and a summary go to stderr. `*status` is the command's, as waitpid() gives it.
 */
struct vp_error *vp_record_loop_run(const struct vp_record_loop *loop, struct vp_command *command,
				    int *status) VP_MUST_CHECK;
/* For a session's options: shows what takes its time. Once only agents are left, a signal may end
 * the program: a second signal skips the remaining work. */
void vp_record_loop_progress(const char *what, bool only_agents_left);

#endif
