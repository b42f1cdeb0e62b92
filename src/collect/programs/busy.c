/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/busy.h"

/* The handler of an overflow takes too much of shorter gaps for the rate to be right. */
#define MIN_GAP_NS 10000
/* The rate follows the clock of the pCPU down by this part with each usual gap. */
#define RATE_DECAY (1.0 / 64)

uint64_t vp_busy_before(struct vp_busy *busy, uint64_t time, uint64_t events, uint64_t period_ns)
{
	uint64_t gap = busy->last && time > busy->last ? time - busy->last : 0;
	uint64_t longest = period_ns + period_ns / 2;

	busy->last = time;
	if (gap < MIN_GAP_NS)
		return 0;
	double rate = (double)events / (double)gap;
	double usual = busy->rate;
	if (rate > usual)
		busy->rate = rate;
	else if (gap <= longest)
		busy->rate -= busy->rate * RATE_DECAY;
	if (gap <= longest || usual <= 0)
		return 0;
	double ns = rate < usual ? (double)events / usual : (double)gap;
	return ns > (double)longest ? (uint64_t)ns : 0;
}
