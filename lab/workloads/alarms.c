/*
 * alarms TIMERS PERIOD_US [--at-once] [--seconds S]
 *
 * So many timers, each due once in the period, one after another at equal distances, or all at
 * once. Nobody waits for them (their signal is ignored): all that happens is that the CPU's own
 * timer interrupts.
 */
#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void start_timer(uint64_t due, uint64_t period)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec times = {
	    .it_value = {(time_t)(due / 1000000000), (long)(due % 1000000000)},
	    .it_interval = {(time_t)(period / 1000000000), (long)(period % 1000000000)}};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, TIMER_ABSTIME, &times, NULL))
		work_usage("starting a timer: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	work_init("alarms");
	bool at_once = argc > 3 && !strcmp(argv[3], "--at-once");
	if (at_once) {
		argc--;
		memmove(&argv[3], &argv[4], (size_t)(argc - 3) * sizeof(*argv));
	}
	if (argc != 3 && (argc != 5 || strcmp(argv[3], "--seconds") != 0))
		work_usage("expected TIMERS PERIOD_US [--at-once] [--seconds S]");
	uint64_t timers = (uint64_t)work_number("TIMERS", argv[1]);
	uint64_t period = (uint64_t)(work_number("PERIOD_US", argv[2]) * 1e3);
	double seconds = argc == 5 ? work_number(argv[3], argv[4]) : 0;

	if (!timers || !period)
		work_usage("expected numbers above 0");
	signal(SIGUSR1, SIG_IGN);
	/* All of them begin when the last one has been started. */
	uint64_t begin = work_now() + period + timers * 100000;
	for (uint64_t i = 0; i < timers; i++)
		start_timer(begin + (at_once ? 0 : period * i / timers), period);
	work_limit(seconds);
	while (!work_over())
		work_sleep(seconds > 0 ? seconds : 1);
	work_summary();
	return 0;
}
