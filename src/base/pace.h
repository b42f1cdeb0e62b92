/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits long work to a share of one pCPU and to bytes per second, whichever is slower. A burst is
 * free; work beyond it is compensated by sleeping. */
#ifndef VP_BASE_PACE_H
#define VP_BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	VP_PACE_CPU_PERCENT = 2, /* percent of one pCPU */
	VP_PACE_MIB = 64,        /* MiB per second */
	/* Burst that is available after a long idle time. */
	VP_PACE_CPU_MS_AT_ONCE = 50,
	VP_PACE_MIB_AT_ONCE = 16,
};

/* Clocks, ns. */
struct vp_throttle_clock {
	void *context;
	uint64_t (*wall)(void *context); /* monotonic */
	uint64_t (*cpu)(void *context);  /* CPU time of this process */
	void (*sleep)(void *context, uint64_t ns);
};

struct vp_throttle {
	struct vp_throttle_clock clock;
	uint64_t now, cpu;          /* at the last update */
	uint64_t cpu_due, read_due; /* times at which all use so far is compensated */
	uint64_t bytes;             /* read since the last update */
};

/* `clock` NULL: the clocks of this process. */
void vp_throttle_init(struct vp_throttle *pace, const struct vp_throttle_clock *clock);
/* Accounts for that many bytes. Returns true if the clocks were read, which is done only now and
 * then. */
bool vp_throttle_charge(struct vp_throttle *pace, uint64_t bytes);
/* Reads the clocks; `charge`: the use since the last update counts. */
void vp_throttle_update(struct vp_throttle *pace, bool charge);
/* Sleeps until the use beyond the burst is compensated, at most until `end`; false: `end` came
 * first. */
bool vp_throttle_wait(struct vp_throttle *pace, uint64_t end);

#endif
