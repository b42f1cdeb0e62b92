/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain DISK [--rounds N]
 *
 * A process waits for a byte in a pipe from another one, which reads a block of DISK, past the page
 * cache, before it writes each. At the end: "chain: waiter=… reader=… rounds=… waited_ns=…
 * read_ns=…", their pids and how long they waited, by their own clock.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 256 };

static void expect(int holds, const char *what)
{
	if (!holds)
		work_usage("%s failed: %s", what, strerror(errno));
}

/* Reads a block for each byte that it is asked with; says how long that took in all. */
static void serve(int disk, int from, int to, uint64_t *read_ns)
{
	void *block = aligned_alloc(BLOCK, BLOCK);
	char ball;

	prctl(PR_SET_NAME, "chain-reader");
	for (long i = 0; read(from, &ball, 1) == 1; i++) {
		uint64_t begin = work_now();
		expect(pread(disk, block, BLOCK, i % BLOCKS * BLOCK) == BLOCK, "pread");
		*read_ns += work_now() - begin;
		expect(write(to, &ball, 1) == 1, "write");
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	bool counted = argc == 4 && !strcmp(argv[2], "--rounds");
	double rounds = counted ? work_number(argv[2], argv[3]) : 100;
	int there[2], back[2];
	uint64_t waited_ns = 0;
	char ball = 'o';
	long i;

	if (argc != 2 && !counted)
		work_usage("expected a disk, and --rounds N");
	work_init("chain");
	int disk = open(argv[1], O_RDONLY | O_DIRECT);
	uint64_t *read_ns =
	    mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(disk >= 0 && read_ns != MAP_FAILED && !pipe(there) && !pipe(back), argv[1]);
	pid_t reader = fork();
	expect(reader >= 0, "fork");
	if (!reader) {
		close(there[1]);
		close(back[0]);
		serve(disk, there[0], back[1], read_ns);
	}
	prctl(PR_SET_NAME, "chain-waiter");
	close(there[0]);
	close(back[1]);
	for (i = 0; i < (long)rounds && !work_over(); i++) {
		expect(write(there[1], &ball, 1) == 1, "write");
		uint64_t begin = work_now();
		expect(read(back[0], &ball, 1) == 1, "read");
		waited_ns += work_now() - begin;
	}
	close(there[1]);
	waitpid(reader, NULL, 0);
	printf("chain: waiter=%d reader=%d rounds=%ld waited_ns=%llu read_ns=%llu\n", (int)getpid(),
	       (int)reader, i, (unsigned long long)waited_ns, (unsigned long long)*read_ns);
	return 0;
}
