/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removes incomplete output if a signal ends the command. */
#ifndef VP_CMD_COMMON_UNFINISHED_H
#define VP_CMD_COMMON_UNFINISHED_H

/* Call it before the output is created. Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE, unless ignored,
 * until vp_unfinished_begin() or vp_unfinished_end(). From now on a thread handles them. */
void vp_unfinished_hold(void);
/* From now on these signals remove the file or directory at `path`, which this command has created,
 * before they end it. NULL: nothing to remove. */
void vp_unfinished_begin(const char *path);
/* The output is complete, could not be created, or the command removes it itself. */
void vp_unfinished_end(void);

#endif
