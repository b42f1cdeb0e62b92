/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run-moved PROGRAM [ARGUMENT]...: runs a program that is moved to the next CPU each 2 ms, and says
 * 'moves=N' on stderr. Its exit status is the program's.
 */
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOVE_US = 2000 };

static void move_to(pid_t pid, unsigned number)
{
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(number, &cpu);
	sched_setaffinity(pid, sizeof(cpu), &cpu);
}

int main(int argc, char **argv)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), moves = 0;
	int status = 0;

	if (argc < 2)
		errx(2, "usage: run-moved PROGRAM [ARGUMENT]...");
	pid_t pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		execvp(argv[1], argv + 1);
		err(1, "%s", argv[1]);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		usleep(MOVE_US);
		move_to(pid, moves++ % cpus);
	}
	fprintf(stderr, "moves=%u\n", moves);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
