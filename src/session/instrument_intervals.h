/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instrument that counts in aligned intervals. */
#ifndef VP_SESSION_INSTRUMENT_INTERVALS_H
#define VP_SESSION_INSTRUMENT_INTERVALS_H

#include "schema/recipe.h"

struct vp_instrument_intervals_options {
	const struct vp_recipe *recipe; /* outlives the instrument */
	size_t ring_bytes;              /* per pCPU, a power of two */
	uint32_t task;                  /* with `per task`: whose intervals, with all it starts */
	/* Possible sources of guest counts. */
	bool read_guest_memory, ask_agents;
	unsigned agent_port; /* vsock; 0: the usual one */
};

struct vp_instrument *
vp_instrument_intervals(const struct vp_instrument_intervals_options *options);

#endif
