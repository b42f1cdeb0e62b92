/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timed NAME PROGRAM [ARGUMENT]...
 *
 * Runs a program and then prints "timed: NAME elapsed_ns=… cpu_ns=…", its elapsed time and the CPU
 * time of it and its children. Exits with its status.
 */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return ((uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		(uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)) *
	       1000;
}

int main(int argc, char **argv)
{
	uint64_t began;
	pid_t child;
	int status;

	if (argc < 3)
		work_usage("expected: timed NAME PROGRAM [ARGUMENT]...");
	began = work_now();
	child = fork();
	if (child < 0)
		work_usage("no process can be started");
	if (!child) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "timed: '%s' cannot be executed\n", argv[2]);
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			work_usage("waiting for the program failed");
	printf("timed: %s elapsed_ns=%llu cpu_ns=%llu\n", argv[1],
	       (unsigned long long)(work_now() - began), (unsigned long long)cpu_ns());
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
