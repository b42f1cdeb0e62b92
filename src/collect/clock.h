/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's clocks, read together. */
#ifndef VP_COLLECT_CLOCK_H
#define VP_COLLECT_CLOCK_H

#include <stdint.h>

struct vp_clock_reading {
	uint64_t monotonic; /* CLOCK_MONOTONIC, ns */
	uint64_t realtime;  /* CLOCK_REALTIME, ns */
	uint64_t tsc;       /* vp_clock_counter() */
	uint32_t error_ns;  /* the readings lie within this many nanoseconds */
};

/* CLOCK_MONOTONIC, ns. */
uint64_t vp_clock_monotonic(void);
/* Reads all clocks; the tightest of a few tries. */
struct vp_clock_reading vp_clock_read(void);

#endif
