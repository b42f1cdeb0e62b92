/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user's command that runs during a recording, and the signals that end one. */
#ifndef VP_CMD_COMMON_COMMAND_H
#define VP_CMD_COMMON_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/macros.h"
#include "cmd/common/verb.h"

/* A child process that waits for a byte before it executes COMMAND. pid is 0 without COMMAND. */
struct vp_command {
	pid_t pid;
	int go;
	int result;       /* the child writes errno here if the execution fails */
	const char *name; /* program name, as in `words` */
};

/* Forks; COMMAND is executed by vp_command_go(). Errors: no such program, fork failed. */
struct vp_error *vp_command_prepare(const struct vp_texts *words,
				    struct vp_command *ret) VP_MUST_CHECK;
/* Executes the prepared command. Errors: execution failed. */
struct vp_error *vp_command_go(struct vp_command *command) VP_MUST_CHECK;
/* Raises the limit of open descriptors for this program; commands get the original limit. */
void vp_command_raise_file_limit(void);
/* True once the command has ended; *status is then that of waitpid(). */
bool vp_command_ended(struct vp_command *command, int *status);
/* The words joined by blanks, to be freed. */
char *vp_command_text(const struct vp_texts *words);

/* Makes files created from now on readable only by their user, unless `shared`: then the umask
 * applies. COMMAND is not affected. */
void vp_command_keep_private(bool shared);

/* From now on SIGINT, SIGTERM and SIGHUP only set a flag. */
void vp_command_catch_signals(void);
/* The same for SIGUSR2, which requests a snapshot; returns true once per signal. */
void vp_command_catch_snapshot_signal(void);
bool vp_command_take_snapshot_wanted(void);
/* Whether SIGINT, SIGTERM or SIGHUP was received. */
bool vp_command_stop_wanted(void);

#endif
