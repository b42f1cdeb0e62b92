/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures the overhead of counting: of reads, and of context switches of the thread. */
#ifndef VP_COUNTERS_COSTS_H
#define VP_COUNTERS_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "vperf/counters.h"

/* Constant overhead, per event. */
struct vp_counters_costs {
	uint64_t read[VPERF_MAX_EVENTS], exact_read[VPERF_MAX_EVENTS];
	uint64_t run[VPERF_MAX_EVENTS]; /* from a switch in to the next switch out */
};

/* Operations on the running counters of the calling thread. */
struct vp_counters_costs_ops {
	/* Reads the counters as a client does; `exact`: as at start and stop. */
	int (*read)(void *context, bool exact, uint64_t *values);
	/* Number of times that the thread was switched in; NULL: switches have no overhead. */
	uint64_t (*runs)(void *context);
};

/* Takes some milliseconds, and creates a thread meanwhile. */
int vp_counters_costs_measure(const struct vp_counters_costs_ops *ops, void *context, unsigned n,
			      struct vp_counters_costs *ret, struct vperf_error *error);

#endif
