/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/pace.h"

#include <time.h>

#include "base/io.h"

#define SECOND 1000000000ULL
#define MIB (1ULL << 20)
/* Bytes between two readings of the clocks. */
#define BYTES_OF_LOOK (256ULL << 10)

static uint64_t read_clock(clockid_t id)
{
	struct timespec time = {0};

	clock_gettime(id, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static uint64_t own_wall(void *context)
{
	(void)context;
	return read_clock(CLOCK_MONOTONIC);
}

static uint64_t own_cpu(void *context)
{
	(void)context;
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static void own_sleep(void *context, uint64_t ns)
{
	(void)context;
	vp_sleep_ns(ns);
}

void vp_throttle_init(struct vp_throttle *pace, const struct vp_throttle_clock *clock)
{
	static const struct vp_throttle_clock own = {
	    .wall = own_wall, .cpu = own_cpu, .sleep = own_sleep};

	*pace = (struct vp_throttle){.clock = clock ? *clock : own};
	pace->now = pace->clock.wall(pace->clock.context);
	pace->cpu = pace->clock.cpu(pace->clock.context);
}

/* Unused budget does not accumulate: the due time is never in the past. */
static void charge_due(uint64_t *due, uint64_t now, uint64_t used, uint64_t per_second)
{
	uint64_t from = *due > now ? *due : now;

	*due = from + (uint64_t)((__uint128_t)used * SECOND / per_second);
}

void vp_throttle_update(struct vp_throttle *pace, bool charge)
{
	uint64_t cpu = pace->clock.cpu(pace->clock.context), before = pace->now;

	pace->now = pace->clock.wall(pace->clock.context);
	if (charge) {
		charge_due(&pace->cpu_due, before, cpu - pace->cpu,
			   SECOND * VP_PACE_CPU_PERCENT / 100);
		charge_due(&pace->read_due, before, pace->bytes, VP_PACE_MIB * MIB);
	}
	pace->cpu = cpu;
	pace->bytes = 0;
}

bool vp_throttle_charge(struct vp_throttle *pace, uint64_t bytes)
{
	pace->bytes += bytes;
	if (pace->bytes < BYTES_OF_LOOK)
		return false;
	vp_throttle_update(pace, true);
	return true;
}

bool vp_throttle_wait(struct vp_throttle *pace, uint64_t end)
{
	const uint64_t cpu_at_once =
	    VP_PACE_CPU_MS_AT_ONCE * 1000000ULL * 100 / VP_PACE_CPU_PERCENT;
	const uint64_t read_at_once = SECOND * VP_PACE_MIB_AT_ONCE / VP_PACE_MIB;
	uint64_t by_cpu = pace->cpu_due > cpu_at_once ? pace->cpu_due - cpu_at_once : 0;
	uint64_t by_read = pace->read_due > read_at_once ? pace->read_due - read_at_once : 0;
	uint64_t due = by_cpu > by_read ? by_cpu : by_read;
	uint64_t until = due < end ? due : end;

	if (until > pace->now) {
		pace->clock.sleep(pace->clock.context, until - pace->now);
		pace->now = pace->clock.wall(pace->clock.context);
	}
	return due <= pace->now;
}
