/*
 * forkstorm [--rate N] [--work-us N] [--count N] [--seconds S]
 *
 * Starts N short-lived processes a second (0 = as fast as it goes, one at a time): each is forked,
 * executes storm_child (found beside this program), burns --work-us of CPU time and ends.
 */
#include "common.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct storm {
	double rate;
	uint64_t work_us, count;
	uint64_t started, ended, failed;
	char child[PATH_MAX];
};

static void find_child(struct storm *storm)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		work_usage("/proc/self/exe cannot be read: %s", strerror(errno));
	self[n] = 0;
	snprintf(storm->child, sizeof(storm->child), "%.4000s/storm_child", dirname(self));
	if (access(storm->child, X_OK))
		work_usage("'%s' cannot be executed: %s", storm->child, strerror(errno));
}

static void parse(struct storm *storm, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		double value = work_number(argv[i], argv[i + 1]);

		if (!strcmp(argv[i], "--rate"))
			storm->rate = value;
		else if (!strcmp(argv[i], "--work-us"))
			storm->work_us = (uint64_t)value;
		else if (!strcmp(argv[i], "--count"))
			storm->count = (uint64_t)value;
		else if (!strcmp(argv[i], "--seconds"))
			work_limit(value);
		else
			work_usage(
			    "unknown option '%s': expected --rate, --work-us, --count or --seconds",
			    argv[i]);
	}
}

static void start_child(struct storm *storm)
{
	char work[32];
	pid_t pid;

	snprintf(work, sizeof(work), "%llu", (unsigned long long)storm->work_us);
	pid = fork();
	if (pid == 0) {
		execl(storm->child, "storm_child", work, (char *)NULL);
		_exit(127);
	}
	if (pid < 0)
		storm->failed++;
	else
		storm->started++;
}

static void reap(struct storm *storm, bool wait)
{
	int status;

	while (waitpid(-1, &status, wait ? 0 : WNOHANG) > 0) {
		storm->ended++;
		storm->failed += !WIFEXITED(status) || WEXITSTATUS(status);
	}
}

int main(int argc, char **argv)
{
	struct storm storm = {.rate = 50, .work_us = 1000};
	struct rusage usage;
	uint64_t begin;

	work_init("forkstorm");
	parse(&storm, argc, argv);
	find_child(&storm);
	begin = work_now();
	while ((!storm.count || storm.started < storm.count) && !work_over()) {
		start_child(&storm);
		if (storm.rate > 0) {
			double due = (double)begin / 1e9 + (double)storm.started / storm.rate;
			double now = (double)work_now() / 1e9;

			if (due > now)
				work_sleep(due - now);
		}
		reap(&storm, storm.rate <= 0);
	}
	reap(&storm, true);
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("forkstorm: started=%llu ended=%llu failed=%llu children_user_s=%ld.%06ld "
	       "children_system_s=%ld.%06ld\n",
	       (unsigned long long)storm.started, (unsigned long long)storm.ended,
	       (unsigned long long)storm.failed, (long)usage.ru_utime.tv_sec,
	       (long)usage.ru_utime.tv_usec, (long)usage.ru_stime.tv_sec,
	       (long)usage.ru_stime.tv_usec);
	work_summary();
	return 0;
}
