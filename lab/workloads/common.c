#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static const char *work_name = "workload";
static uint64_t begin, end;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

uint64_t work_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void work_init(const char *name)
{
	struct sigaction action = {.sa_handler = on_signal};

	work_name = name;
	begin = work_now();
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* The limit is polled: it may be set after the thread started. */
static void *wait_for_end(void *argument)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	const sigset_t *mask = argument;

	while (sigtimedwait(mask, NULL, &pause) < 0 && !work_over())
		;
	work_summary();
	_exit(0);
}

void work_init_abrupt(const char *name)
{
	static sigset_t mask;
	pthread_t thread;

	work_init(name);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	if (pthread_create(&thread, NULL, wait_for_end, &mask))
		work_usage("a thread cannot be made");
}

void work_limit(double seconds)
{
	end = seconds > 0 ? begin + (uint64_t)(seconds * 1e9) : 0;
}

bool work_over(void)
{
	return stop || (end && work_now() >= end);
}

void work_sleep(double seconds)
{
	uint64_t ns = (uint64_t)(seconds * 1e9);
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};

	if (!stop)
		nanosleep(&ts, NULL);
}

struct work_schedstat work_schedstat(pid_t pid)
{
	struct work_schedstat found = {0};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	FILE *file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%llu %llu", &found.on_cpu, &found.delay) != 2)
			found = (struct work_schedstat){0};
		fclose(file);
	}
	return found;
}

void work_summary(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("%s: pid=%d user_s=%ld.%06ld system_s=%ld.%06ld elapsed_s=%.6f run_delay_s=%.6f\n",
	       work_name, getpid(), (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec,
	       (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec,
	       (double)(work_now() - begin) / 1e9, (double)work_schedstat(getpid()).delay / 1e9);
}

void work_usage(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "%s: ", work_name);
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(2);
}

double work_number(const char *option, const char *text)
{
	char *rest = NULL;
	double value = text ? strtod(text, &rest) : -1;

	if (!text || rest == text || *rest || !(value >= 0))
		work_usage("'%s' needs a number, not '%s'", option, text ? text : "");
	return value;
}
