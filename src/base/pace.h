/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits the cost of long work to a share of one pCPU and to a number of bytes per second,
 * whichever is slower. A little may be used at once; more is paid for by sleeping. */
#ifndef VP_BASE_PACE_H
#define VP_BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	VP_PACE_CPU_PERCENT = 2, /* of one pCPU */
	VP_PACE_MIB = 64,        /* in a second */
	/* The amount that may be used at once after a long idle time. */
	VP_PACE_CPU_MS_AT_ONCE = 50,
	VP_PACE_MIB_AT_ONCE = 16,
};

/* Nanoseconds. */
struct vp_throttle_clock {
	void *context;
	uint64_t (*wall)(void *context); /* that only goes on */
	uint64_t (*cpu)(void *context);  /* that this process has used */
	void (*sleep)(void *context, uint64_t ns);
};

struct vp_throttle {
	struct vp_throttle_clock clock;
	uint64_t now, cpu;          /* at the last look */
	uint64_t cpu_due, read_due; /* when all that was used is paid for */
	uint64_t bytes;             /* read since the last look */
};

/* `clock` NULL: this process's own. */
void vp_throttle_init(struct vp_throttle *pace, const struct vp_throttle_clock *clock);
/* Accounts for that many bytes. True if the clocks were read, which is done from time to time. */
bool vp_throttle_charge(struct vp_throttle *pace, uint64_t bytes);
/* Looks at the clocks; `charge`: what was used since the last look has to be paid for. */
void vp_throttle_update(struct vp_throttle *pace, bool charge);
/* Sleeps until what was used beyond what may be used at once is paid for, but not beyond `end`;
 * false: it is not by then. */
bool vp_throttle_wait(struct vp_throttle *pace, uint64_t end);

#endif
