/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: counters over aligned intervals. */
#ifndef VP_SESSION_INSTRUMENT_INTERVALS_H
#define VP_SESSION_INSTRUMENT_INTERVALS_H

#include <stdbool.h>

#include "schema/recipe.h"

struct vp_instrument_intervals_options {
	const struct vp_recipe *recipe; /* outlives the instrument */
	size_t ring_bytes;              /* per pCPU, a power of two */
	uint32_t task; /* with `per task`: the task to count, with its descendants */
	/* Sources of guest counts. */
	bool read_guest_memory, ask_agents;
	unsigned agent_port; /* vsock port; 0: the default */
	/* On a hypervisor whose trace has it: also count what PV guests enter it for. */
	bool paravirtual;
};

struct vp_instrument *
vp_instrument_intervals(const struct vp_instrument_intervals_options *options);

#endif
