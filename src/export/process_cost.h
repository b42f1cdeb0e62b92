/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time and memory of vperf itself. */
#ifndef VP_EXPORT_PROCESS_COST_H
#define VP_EXPORT_PROCESS_COST_H

#include <stdint.h>

struct vp_process_cost {
	uint64_t cpu_ns; /* of running descendants in ticks, rounded down */
	uint64_t memory; /* bytes; a page of several processes counts once (Pss) */
};

/* Reads the cost of this process and all its descendants, CPU time also of those that have ended.
 * CPU time never decreases, although it is rounded. On kernels without CONFIG_PROC_CHILDREN,
 * running descendants are missing. */
void vp_process_cost_update(struct vp_process_cost *cost);

#endif
