/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine's clocks, read together. */
#ifndef VP_BASE_CLOCK_H
#define VP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

struct vp_clock_reading {
	uint64_t monotonic; /* CLOCK_MONOTONIC, ns */
	uint64_t realtime;  /* CLOCK_REALTIME, ns */
	uint64_t tsc;       /* clock_counter() */
	uint32_t error_ns;  /* the readings lie within this many nanoseconds */
};

/* CLOCK_MONOTONIC, ns. */
uint64_t vp_clock_monotonic(void);
/* Reads all clocks; the tightest of a few tries. */
struct vp_clock_reading vp_clock_read(void);

/* A reading of a kernel clock, and of the counter at the same moment within error_ns: the tightest
 * of `tries`, since others may be interrupted. */
void vp_clock_pair(clockid_t clock, int tries, uint64_t *ns, uint64_t *counter, uint64_t *error_ns);

#endif
