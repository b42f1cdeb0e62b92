/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time and memory of running processes. */
#ifndef VP_DAEMON_PROCESS_COST_H
#define VP_DAEMON_PROCESS_COST_H

#include <stdint.h>
#include <sys/types.h>

struct vp_process_cost {
	uint64_t cpu_ns; /* in ticks, rounded down for each process */
	uint64_t memory; /* resident, bytes */
};

/* Adds the process's memory, and the CPU time of it and of all its descendants, also of those that
 * have ended. Nothing is added for a process that does not exist. */
void vp_process_cost_add(pid_t process, struct vp_process_cost *cost);

#endif
