/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

/* Smaller steps are adjustments. */
#define JUMP_LEAST_NS 1000000000LL

static uint64_t read_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The counter of this machine's clocks, as user space reads it: TSC on x86, CNTVCT on 64-bit Arm; 0
 * on other architectures. */
static uint64_t clock_counter(void)
{
	/* Barriers keep it between the clock readings around it. */
#if defined(__x86_64__)
	__builtin_ia32_lfence();
	uint64_t counter = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return counter;
#elif defined(__aarch64__)
	uint64_t counter;
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(counter) : : "memory");
	return counter;
#else
	return 0;
#endif
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
		uint64_t tsc = clock_counter();
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

void vp_clock_pair(clockid_t clock, int tries, uint64_t *ns, uint64_t *counter, uint64_t *error_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < tries; i++) {
		uint64_t before = read_ns(clock);
		uint64_t at = clock_counter();
		uint64_t after = read_ns(clock);
		if (after - before < best) {
			best = after - before;
			*ns = before + (after - before) / 2;
			*counter = at;
		}
	}
	*error_ns = best + 1; /* round up fractions of a nanosecond */
}

int64_t vp_clock_jump(const struct vp_clock_reading *clock, int64_t *offset)
{
	int64_t now = (int64_t)(clock->realtime - clock->monotonic);
	int64_t jump = *offset ? now - *offset : 0;

	*offset = now;
	return llabs(jump) < JUMP_LEAST_NS ? 0 : jump;
}
