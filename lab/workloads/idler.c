/*
 * idler BUSY PERIOD [--repeat N] [--seconds S]
 *
 * Burns BUSY seconds (of CLOCK_MONOTONIC) at the start of every PERIOD seconds and sleeps the rest.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>

__attribute__((noinline)) static void idler_busy(uint64_t until)
{
	volatile uint64_t sink = 0;

	while (work_now() < until && !work_over())
		for (int i = 0; i < 20000; i++)
			sink = sink + 1;
}

__attribute__((noinline)) static void idler_sleep(uint64_t until)
{
	while (work_now() < until && !work_over())
		work_sleep((double)(until - work_now()) / 1e9);
}

int main(int argc, char **argv)
{
	double busy, period;
	uint64_t repeat = 0, done = 0, busy_ns = 0, start;

	work_init("idler");
	if (argc < 3)
		work_usage("expected BUSY PERIOD [--repeat N] [--seconds S], both in seconds");
	busy = work_number("BUSY", argv[1]);
	period = work_number("PERIOD", argv[2]);
	if (period <= 0 || busy > period)
		work_usage("PERIOD must be above 0 and at least BUSY");
	for (int i = 3; i < argc; i += 2) {
		if (!strcmp(argv[i], "--repeat"))
			repeat = (uint64_t)work_number(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			work_limit(work_number(argv[i], argv[i + 1]));
		else
			work_usage("unknown option '%s': expected --repeat or --seconds", argv[i]);
	}
	start = work_now();
	while ((!repeat || done < repeat) && !work_over()) {
		uint64_t base = start + (uint64_t)((double)done * period * 1e9);
		uint64_t began = work_now();

		idler_busy(base + (uint64_t)(busy * 1e9));
		busy_ns += work_now() - began;
		idler_sleep(base + (uint64_t)(period * 1e9));
		done++;
	}
	printf("idler: periods=%llu busy_s=%.6f\n", (unsigned long long)done,
	       (double)busy_ns / 1e9);
	work_summary();
	return 0;
}
