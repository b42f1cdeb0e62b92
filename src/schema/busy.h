/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Detects idle gaps between samples of a counter in frequency mode. The counter stops on an idle
 * pCPU, so a long gap is idle time, unless the event rate stayed the same: then perf's period was
 * too long, as it is at first. Used by the sampling program and by user space.
 */
#ifndef VP_SCHEMA_BUSY_H
#define VP_SCHEMA_BUSY_H

#include <linux/types.h>

/* One pCPU's counter. Zero-initialized. */
struct vp_busy {
	__u64 last; /* time of the previous sample, ns; 0: none */
	__u64 rate; /* events per 2^20 ns while the pCPU was busy; 0: unknown */
};

/* In shorter gaps the overflow handler's own time distorts the rate. */
#define VP_BUSY_MIN_GAP_NS 10000
#define VP_BUSY_SHIFT 20
/* Decay of the rate per usual gap, 1/64: it follows a lower clock frequency of the pCPU. */
#define VP_BUSY_DECAY 6

/* Notes a sample at `time` that ends a period of `events` events. Returns the busy ns before it if
 * the gap was longer than 1.5 periods, else 0. */
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
