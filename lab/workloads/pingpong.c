/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pingpong [--rounds N]
 *
 * Two processes send a byte to and fro through pipes. At the end: "pingpong: pid=… child=… rounds=…
 * switches=…", the switches that the kernel has counted of both since they began to play.
 */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long switches(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void expect(int holds, const char *what)
{
	if (!holds)
		work_usage("%s failed", what);
}

static int pass_on(int from, int to, char *ball)
{
	ssize_t got;

	do
		got = read(from, ball, 1);
	while (got < 0 && errno == EINTR);
	return got == 1 && (to < 0 || write(to, ball, 1) == 1);
}

static void answer(int from, int to)
{
	char ball;

	while (pass_on(from, to, &ball))
		;
	_exit(0);
}

/* Returns how many rounds were played. */
static long play(int to, int from, long rounds)
{
	char ball = 'o';
	long i;

	for (i = 0; i < rounds && !work_over(); i++)
		expect(write(to, &ball, 1) == 1 && pass_on(from, -1, &ball), "a round");
	return i;
}

int main(int argc, char **argv)
{
	double rounds =
	    argc == 3 && !strcmp(argv[1], "--rounds") ? work_number(argv[1], argv[2]) : 1000;
	int there[2], back[2];

	work_init("pingpong");
	expect(!pipe(there) && !pipe(back), "pipe");
	long before = switches(RUSAGE_SELF);
	pid_t child = fork();
	expect(child >= 0, "fork");
	if (!child) {
		close(there[1]);
		close(back[0]);
		answer(there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	long played = play(there[1], back[0], (long)rounds);
	close(there[1]);
	waitpid(child, NULL, 0);
	printf("pingpong: pid=%d child=%d rounds=%ld switches=%ld\n", (int)getpid(), (int)child,
	       played, switches(RUSAGE_SELF) - before + switches(RUSAGE_CHILDREN));
	return 0;
}
