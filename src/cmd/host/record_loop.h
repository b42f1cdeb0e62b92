/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Main loop of the recording commands, in parallel with the user's command. */
#ifndef VP_CMD_HOST_RECORD_LOOP_H
#define VP_CMD_HOST_RECORD_LOOP_H

#include "base/macros.h"
#include "cmd/common/command.h"
#include "cmd/host/record_targets.h"
#include "session/session.h"

struct vp_record_loop {
	const char *verb;
	uint64_t duration_ns; /* 0: until COMMAND ends or Ctrl-C */
	bool quiet;           /* print neither progress nor summary */
	const char *output;
	struct vp_session *session; /* opened */
	struct vp_record_targets
	    *targets; /* the recording ends when all of them have ended; or NULL */
};

/* Records until the command, the targets or the duration end, or the user stops it; prints
 * warnings, progress and a summary to stderr. `*status` is that of the command, from waitpid(). */
struct vp_error *vp_record_loop_run(const struct vp_record_loop *loop, struct vp_command *command,
				    int *status) VP_MUST_CHECK;
/* For a session's options: prints slow steps. While only agents are pending, a signal may end the
 * program: a second signal skips the remaining work. */
void vp_record_loop_progress(const char *what, bool only_agents_left);

#endif
