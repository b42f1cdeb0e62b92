/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_CMD_READ_STAT_REPORT_H
#define VP_CMD_READ_STAT_REPORT_H

/* Runs 'vperf stat report'; argv[0] is "report". */
int vp_stat_report(int argc, char **argv);

#endif
