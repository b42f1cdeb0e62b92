/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user's command that runs during a recording, and the signals that end one. */
#ifndef VP_CMD_COMMON_COMMAND_H
#define VP_CMD_COMMON_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/macros.h"
#include "cmd/common/verb.h"

/* A started command that waits for a byte before it becomes COMMAND. pid is 0 without COMMAND. */
struct vp_command {
	pid_t pid;
	int go;
	int result;       /* the child writes errno here if it cannot be executed */
	const char *name; /* of the program, as in `words` */
};

/* Forks; COMMAND is executed after vp_command_go(). Errors: there is no such program, or no
 * process. */
struct vp_error *vp_command_prepare(const struct vp_texts *words,
				    struct vp_command *ret) VP_MUST_CHECK;
/* Executes the prepared command. Errors: it cannot be executed. */
struct vp_error *vp_command_go(struct vp_command *command) VP_MUST_CHECK;
/* Raises the limit of open descriptors for this program; commands get the limit as it was. */
void vp_command_raise_file_limit(void);
/* True once the command has ended; *status is then what waitpid() said. */
bool vp_command_ended(struct vp_command *command, int *status);
/* The words as one text, to be freed. */
char *vp_command_text(const struct vp_texts *words);

/* Files created from now on are readable only by their user, unless they are to be `shared`: then
 * the umask decides, as it does for COMMAND. */
void vp_command_keep_private(bool shared);

/* From now on SIGINT, SIGTERM and SIGHUP only set the flag to stop. */
void vp_command_catch_signals(void);
/* The same of SIGUSR2: somebody wants a snapshot. True once for each time that it came. */
void vp_command_catch_snapshot_signal(void);
bool vp_command_take_snapshot_wanted(void);
/* Whether one of the former signals has come. */
bool vp_command_stop_wanted(void);

#endif
