/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of vperf stat share. */
#ifndef VP_CMD_STAT_H
#define VP_CMD_STAT_H

#include "cmd/command.h"

struct vp_stat_options {
	const char *recipe, *output, *per;
	struct vp_texts vms, command;
	uint64_t duration, pages, agent_port;
	bool native, no_memory, no_agent, list, quiet, help;
};

/* `vperf stat report`: argv[0] is "report". */
int vp_stat_report(int argc, char **argv);

#endif
