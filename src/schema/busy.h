/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gaps between samples of a counter at a frequency. The counter stands still on an idle pCPU, so a
 * long gap is idle time, unless the counter counted as fast as usual: then perf's period was too
 * long, as it is at first. Used by the sampling program and by user space.
 */
#ifndef VP_SCHEMA_BUSY_H
#define VP_SCHEMA_BUSY_H

#include <linux/types.h>

/* One pCPU's counter. Zero-initialized. */
struct vp_busy {
	__u64 last; /* time of its last sample, ns; 0: none yet */
	__u64 rate; /* events per 2^20 ns while the pCPU was busy; 0: not known yet */
};

/* The handler of an overflow takes too much of shorter gaps for the rate to be right. */
#define VP_BUSY_MIN_GAP_NS 10000
#define VP_BUSY_SHIFT 20
/* The rate follows the clock of the pCPU down by this part, 1/64, with each usual gap. */
#define VP_BUSY_DECAY 6

/*
 * Takes note of a sample at `time` that ends `events` events. Returns for how many ns before it the
 * pCPU was busy, if that is more than 1.5 periods; else 0.
 */
static inline __attribute__((always_inline)) __u64 vp_busy_before(struct vp_busy *busy, __u64 time,
								  __u64 events, __u64 period_ns)
{
	__u64 gap = busy->last && time > busy->last ? time - busy->last : 0;
	__u64 longest = period_ns + period_ns / 2, usual = busy->rate, ns = gap;

	busy->last = time;
	if (gap < VP_BUSY_MIN_GAP_NS || events >> (64 - VP_BUSY_SHIFT))
		return 0;
	__u64 rate = (events << VP_BUSY_SHIFT) / gap;
	if (rate > usual)
		busy->rate = rate;
	else if (gap <= longest)
		busy->rate -= usual >> VP_BUSY_DECAY;
	if (gap <= longest || !usual)
		return 0;
	if (rate < usual)
		ns = (events << VP_BUSY_SHIFT) / usual;
	return ns > longest ? ns : 0;
}

#endif
