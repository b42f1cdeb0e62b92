/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pager for long output on a terminal, as in git and perf. */
#ifndef VP_CMD_COMMON_PAGER_H
#define VP_CMD_COMMON_PAGER_H

/* If standard output is a terminal, redirects it to $VPERF_PAGER, $PAGER or "less", unless that is
 * "cat" or "". At exit, the program waits for the pager. */
void vp_pager_begin(void);

#endif
