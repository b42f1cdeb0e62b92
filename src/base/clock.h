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
	uint32_t error_ns;  /* maximum distance of the three readings, ns */
};

/* CLOCK_MONOTONIC, ns. */
uint64_t vp_clock_monotonic(void);
/* Reads all clocks; the closest of several attempts. */
struct vp_clock_reading vp_clock_read(void);

/* Reads a kernel clock and the TSC as close together as possible: the best of `tries` attempts,
 * because others may be interrupted. error_ns: maximum distance of the two. */
void vp_clock_pair(clockid_t clock, int tries, uint64_t *ns, uint64_t *counter, uint64_t *error_ns);

/* How far CLOCK_REALTIME was set since the previous call, or the machine slept, ns; 0: by less than
 * a second, which NTP slews. `offset`: CLOCK_REALTIME - CLOCK_MONOTONIC then, 0 at first. */
int64_t vp_clock_jump(const struct vp_clock_reading *clock, int64_t *offset);

#endif
