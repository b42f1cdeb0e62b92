/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * overflow-asleep any|user|call|lent EVENT PERIOD LOOPS: a thread that does not run when it would
 * get the signal of an overflow. It executes LOOPS of six instructions and goes to sleep in the
 * kernel (vfork) until another task has looked at it, which executes as many of the same meanwhile.
 * Then it executes an eighth as many. With lent counters, whose overflows no interrupt tells of, it
 * reads its counter (exactly: the host does not publish it otherwise until it has to interrupt the
 * guest), and goes to sleep as soon as a period is full of which it has no signal yet.
 * Prints one line: 'at', its counter when it went to sleep, as far as it knows; 'before', 'asleep'
 * and 'after', the signals that the thread had before it went to sleep, while it slept and at the
 * end; 'pending', whether one was waiting for it; 'strangers', signals that another thread got;
 * 'switches' of the thread; 'value', its counter at the end.
 */
#include <err.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "known_loop.h"
#include "vperf/counters.h"

enum {
	SIZE_OF_STACK = 65536,
	ASLEEP_US = 50000,
	PART_AFTERWARDS = 8,
	PIECE = 50,
	MAX_PERIODS = 20
};

static pid_t own;
static unsigned long loops;
static volatile unsigned signals, strangers, signals_asleep;
static volatile int pending;
static char stack[SIZE_OF_STACK] __attribute__((aligned(16)));

static void on_overflow(int number, siginfo_t *info, void *context)
{
	if ((pid_t)syscall(SYS_gettid) == own)
		signals++;
	else
		strangers++;
}

/* Of the thread, by the kernel's books: the signals that it has not got yet. */
static uint64_t pending_signals(void)
{
	char path[64], line[256];
	uint64_t mask = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", own, own);
	FILE *status = fopen(path, "r");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "SigPnd: %" SCNx64, &mask) == 1)
			break;
	if (status)
		fclose(status);
	return mask;
}

/* Shares the memory of the thread, which sleeps until this has ended. */
static int look_meanwhile(void *context)
{
	known_loop(loops);
	usleep(ASLEEP_US);
	pending = pending_signals() != 0;
	signals_asleep = signals;
	return 0;
}

static void bind_to_first(void)
{
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
}

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static uint32_t way_of(const char *name)
{
	static const char *const names[] = {"any", "user", "call", "lent"};

	for (uint32_t i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			return i;
	errx(2, "'%s' is no way", name);
}

static uint64_t value_of(struct vperf_counters *counters)
{
	uint64_t value;

	if (vperf_counters_read(counters, &value))
		errx(1, "cannot read");
	return value;
}

/* Until as many periods are full as it has signals, and one more. Its counter then. */
static uint64_t work_up_to_overflow(struct vperf_counters *counters, uint64_t period)
{
	uint64_t value = 0;

	for (uint64_t full = 0; full < MAX_PERIODS; full++) {
		while ((value = value_of(counters)) / period <= full)
			known_loop(PIECE);
		if (signals <= full)
			return value;
	}
	errx(1, "no signal came later than its overflow");
}

static struct vperf_counters *open_counter(char **argv)
{
	const struct sigaction action = {.sa_sigaction = on_overflow,
					 .sa_flags = SA_SIGINFO | SA_RESTART};
	const struct vperf_options options = {.size = sizeof(options),
					      .way = way_of(argv[1]),
					      .flags = VPERF_EXACT,
					      .signal = SIGRTMIN + 1,
					      .period = strtoull(argv[3], NULL, 0)};
	const char *const events[] = {argv[2]};
	struct vperf_counters *counters;
	struct vperf_error error;

	sigaction(options.signal, &action, NULL);
	if (vperf_counters_open(events, 1, &options, &counters, &error))
		errx(1, "%s", error.text);
	return counters;
}

/* The signals before. */
static unsigned go_to_sleep(void)
{
	unsigned before = signals;
	pid_t pid =
	    clone(look_meanwhile, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	if (pid < 0)
		err(1, "clone");
	known_loop(loops / PART_AFTERWARDS);
	return before;
}

int main(int argc, char **argv)
{
	uint64_t at = 0, value = 0;

	if (argc != 5)
		errx(2, "usage: overflow-asleep WAY EVENT PERIOD LOOPS");
	loops = strtoul(argv[4], NULL, 0);
	own = (pid_t)syscall(SYS_gettid);
	bind_to_first();
	struct vperf_counters *counters = open_counter(argv);
	long switched = switches();
	if (vperf_counters_start(counters))
		errx(1, "cannot start");
	if (vperf_counters_way(counters) == VPERF_WAY_LENT)
		at = work_up_to_overflow(counters, strtoull(argv[3], NULL, 0));
	else
		known_loop(loops);
	unsigned before = go_to_sleep(), after = signals;
	if (vperf_counters_stop(counters, &value))
		errx(1, "cannot stop");
	switched = switches() - switched;
	printf("at=%" PRIu64
	       " before=%u asleep=%u pending=%d after=%u strangers=%u switches=%ld value=%" PRIu64
	       "\n",
	       at, before, signals_asleep, pending, after, strangers, switched, value);
	vperf_counters_close(counters);
	return 0;
}
