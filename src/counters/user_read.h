/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions that read a counter in user space. */
#ifndef VP_COUNTERS_USER_READ_H
#define VP_COUNTERS_USER_READ_H

#include <stdbool.h>
#include <stdint.h>

#define VP_COUNTERS_BARRIER() __asm__ volatile("" ::: "memory")

#if defined(__x86_64__)

enum { VP_COUNTERS_HAVE_USER_READ = 1 };

/* `number`: index of struct perf_event_mmap_page, minus 1. */
static inline uint64_t vp_counters_user_read(uint32_t number)
{
	uint64_t low, high; /* the instruction clears the upper halves of both registers */

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
	return high << 32 | low;
}

#elif defined(__aarch64__)

enum { VP_COUNTERS_HAVE_USER_READ = 1 };

/* The register's number is part of the instruction. */
#define VP_COUNTERS_READ_CASE(n)                                                                   \
	case n:                                                                                    \
		__asm__ volatile("mrs %0, pmevcntr" #n "_el0" : "=r"(value));                      \
		break;

/* 31: the cycle counter (arch/arm64/kernel/perf_event.c, armv8pmu_user_event_idx). */
static inline uint64_t vp_counters_user_read(uint32_t number)
{
	uint64_t value = 0;

	switch (number) {
		VP_COUNTERS_READ_CASE(0)
		VP_COUNTERS_READ_CASE(1)
		VP_COUNTERS_READ_CASE(2)
		VP_COUNTERS_READ_CASE(3)
		VP_COUNTERS_READ_CASE(4)
		VP_COUNTERS_READ_CASE(5)
		VP_COUNTERS_READ_CASE(6)
		VP_COUNTERS_READ_CASE(7)
		VP_COUNTERS_READ_CASE(8)
		VP_COUNTERS_READ_CASE(9)
		VP_COUNTERS_READ_CASE(10)
		VP_COUNTERS_READ_CASE(11)
		VP_COUNTERS_READ_CASE(12)
		VP_COUNTERS_READ_CASE(13)
		VP_COUNTERS_READ_CASE(14)
		VP_COUNTERS_READ_CASE(15)
		VP_COUNTERS_READ_CASE(16)
		VP_COUNTERS_READ_CASE(17)
		VP_COUNTERS_READ_CASE(18)
		VP_COUNTERS_READ_CASE(19)
		VP_COUNTERS_READ_CASE(20)
		VP_COUNTERS_READ_CASE(21)
		VP_COUNTERS_READ_CASE(22)
		VP_COUNTERS_READ_CASE(23)
		VP_COUNTERS_READ_CASE(24)
		VP_COUNTERS_READ_CASE(25)
		VP_COUNTERS_READ_CASE(26)
		VP_COUNTERS_READ_CASE(27)
		VP_COUNTERS_READ_CASE(28)
		VP_COUNTERS_READ_CASE(29)
		VP_COUNTERS_READ_CASE(30)
	default:
		__asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
	}
	return value;
}

#undef VP_COUNTERS_READ_CASE

#else

enum { VP_COUNTERS_HAVE_USER_READ = 0 };

static inline uint64_t vp_counters_user_read(uint32_t number)
{
	return 0;
}

#endif

#endif
