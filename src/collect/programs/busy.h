/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gaps between samples of a counter at a frequency. The counter stands still on an idle pCPU, so a
 * long gap is idle time, unless the counter counted as fast as usual: then perf's period was too
 * long, as it is at first.
 */
#ifndef VP_COLLECT_PROGRAMS_BUSY_H
#define VP_COLLECT_PROGRAMS_BUSY_H

#include <stdint.h>

/* One pCPU's counter. Zero-initialized. */
struct vp_busy {
	uint64_t last; /* time of its last sample, ns; 0: none yet */
	double rate;   /* events per ns while the pCPU was busy; 0: not known yet */
};

/*
 * Takes note of a sample at `time` that ends `events` events. Returns for how many ns before it the
 * pCPU was busy, if that is more than 1.5 periods; else 0.
 */
uint64_t vp_busy_before(struct vp_busy *busy, uint64_t time, uint64_t events, uint64_t period_ns);

#endif
