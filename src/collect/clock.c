/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/clock.h"

#include <time.h>

#include "maps/proc.h"

static uint64_t read_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t vp_clock_monotonic(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

struct vp_clock_reading vp_clock_read(void)
{
	struct vp_clock_reading best = {.error_ns = UINT32_MAX};

	for (int i = 0; i < 8; i++) {
		uint64_t before = vp_clock_monotonic();
		uint64_t tsc = vp_clock_counter();
		uint64_t realtime = read_ns(CLOCK_REALTIME);
		uint64_t after = vp_clock_monotonic();
		if (after - before < best.error_ns)
			best = (struct vp_clock_reading){.monotonic = before + (after - before) / 2,
							 .realtime = realtime,
							 .tsc = tsc,
							 .error_ns = (uint32_t)(after - before)};
	}
	return best;
}
