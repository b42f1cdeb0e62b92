/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pager for long output on a terminal, as git and perf have it. */
#ifndef VP_CMD_COMMON_PAGER_H
#define VP_CMD_COMMON_PAGER_H

/*
 * If standard output is a terminal, it goes through $VPERF_PAGER, $PAGER or "less" from now on; not
 * if that is "cat" or "". When the program ends, it waits for the pager.
 */
void vp_pager_begin(void);

#endif
