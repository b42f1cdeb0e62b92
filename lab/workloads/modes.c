/*
 * modes USER KERNEL [--timer US] [--seconds S]
 *
 * Spends known shares of its time in user space and in the kernel: of USER + KERNEL pieces, in
 * random order, USER are computation and KERNEL are system calls, read(2) of /dev/zero. Each piece
 * is the same work every time, so that the shortest one is a piece that nothing interrupted. With
 * --timer, a signal interrupts it every US microseconds. Prints the time of the pieces without
 * interrupts, the time of the whole run, the number of signals, and by how much a signal made the
 * shortest piece of computation longer that had exactly one.
 */
#include "common.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOPS = 5000, BYTES = 65536 };

/* Pieces of one kind: how many there were, and the shortest. */
struct pieces {
	uint64_t count, least;
	uint64_t least_with_signal; /* of those with exactly one; UINT64_MAX: there was none */
};

static volatile uint64_t signals;

/* `came`: the signals from after `began` was read until now. */
static void add(struct pieces *pieces, uint64_t began, uint64_t came)
{
	uint64_t ns = work_now() - began;

	if (!pieces->count++ || ns < pieces->least)
		pieces->least = ns;
	if (came == 1 && ns < pieces->least_with_signal)
		pieces->least_with_signal = ns;
}

__attribute__((noipa)) static void modes_user(struct pieces *pieces)
{
	uint64_t began = work_now(), signals_before = signals;

	for (volatile int i = 0; i < LOOPS; i++)
		;
	add(pieces, began, signals - signals_before);
}

__attribute__((noipa)) static void modes_kernel(struct pieces *pieces, int zero)
{
	static char bytes[BYTES];
	uint64_t began = work_now(), signals_before = signals;

	for (long n, left = BYTES; left; left -= n) { /* a signal ends a call early */
		n = work_read(zero, bytes, (size_t)left);
		if (n <= 0)
			work_usage("/dev/zero cannot be read");
	}
	add(pieces, began, signals - signals_before);
}

static void count_signal(int signal)
{
	(void)signal;
	signals++;
}

static void start_timer(double us)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	long ns = (long)(us * 1000);
	struct itimerspec every = {{ns / 1000000000, ns % 1000000000},
				   {ns / 1000000000, ns % 1000000000}};
	timer_t timer;

	signal(SIGALRM, count_signal);
	if (us > 0 && (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
		       timer_settime(timer, 0, &every, NULL)))
		work_usage("a timer cannot be set");
}

int main(int argc, char **argv)
{
	struct pieces user = {.least_with_signal = UINT64_MAX}, kernel = user;
	double timer_us = 0;
	uint64_t began, in_user, in_kernel, random = 1;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	work_init("modes");
	if (argc < 3)
		work_usage("expected USER KERNEL [--timer US] [--seconds S]");
	in_user = (uint64_t)work_number("USER", argv[1]);
	in_kernel = (uint64_t)work_number("KERNEL", argv[2]);
	if (!(in_user + in_kernel))
		work_usage("USER and KERNEL are both 0");
	for (int i = 3; i < argc; i += 2) {
		if (!strcmp(argv[i], "--timer"))
			timer_us = work_number(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			work_limit(work_number(argv[i], argv[i + 1]));
		else
			work_usage("unknown option '%s': expected --timer or --seconds", argv[i]);
	}
	start_timer(timer_us);
	began = work_now();
	while (!work_over()) {
		if (work_random(&random) % (in_user + in_kernel) < in_user)
			modes_user(&user);
		else
			modes_kernel(&kernel, zero);
	}
	printf("modes: user_ns=%llu kernel_ns=%llu all_ns=%llu signals=%llu signal_ns=%llu\n",
	       (unsigned long long)(user.count * user.least),
	       (unsigned long long)(kernel.count * kernel.least),
	       (unsigned long long)(work_now() - began), (unsigned long long)signals,
	       user.least_with_signal == UINT64_MAX
		   ? 0ULL
		   : (unsigned long long)(user.least_with_signal - user.least));
	work_summary();
	return 0;
}
