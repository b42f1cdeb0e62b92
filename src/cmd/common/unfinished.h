/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An output that is removed if a signal ends the command before it is complete. */
#ifndef VP_CMD_COMMON_UNFINISHED_H
#define VP_CMD_COMMON_UNFINISHED_H

/* Call it before an output is created. SIGINT, SIGTERM, SIGHUP and SIGPIPE, unless they are
 * ignored, wait for vp_unfinished_begin() or vp_unfinished_end(). From now on a thread receives
 * them. */
void vp_unfinished_hold(void);
/* The file or directory at `path`, which this command created, is removed if one of these signals
 * ends it. NULL: there is nothing to remove. */
void vp_unfinished_begin(const char *path);
/* The output is complete, could not be created, or its command removes it. */
void vp_unfinished_end(void);

#endif
