/*
 * calls [--syscalls|--both|--null] [--seconds S] [--iterations N]: burns time six calls below
 * main(), in a tree whose every path is known: level_1 calls level_2, … level_5 calls level_6,
 * which burns. With --syscalls it reads from /dev/zero there instead, with --both by turns. With
 * --null it makes the shortest system calls there. Built with frame pointers.
 */
#include "common.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 2000000, READS = 2000, BYTES = 4096 };

static int zero = -1;
static bool burn = true, null;

__attribute__((noipa)) static unsigned level_6(unsigned x)
{
	static char bytes[BYTES];

	/* The frame is made here, not where it is needed first. */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	if (null)
		for (int i = 0; i < READS; i++)
			x += work_null();
	else if (burn)
		for (volatile unsigned i = 0; i < ROUNDS; i++)
			x += i;
	else
		for (int i = 0; i < READS; i++)
			x += (unsigned)work_read(zero, bytes, sizeof(bytes));
	return x;
}

#define LEVEL(n, below)                                                                            \
	__attribute__((noipa)) static unsigned level_##n(unsigned x)                               \
	{                                                                                          \
		x = level_##below(x + n);                                                          \
		__asm__ volatile("" : "+r"(x)); /* no tail call */                                 \
		return x;                                                                          \
	}
LEVEL(5, 6)
LEVEL(4, 5)
LEVEL(3, 4)
LEVEL(2, 3)
LEVEL(1, 2)

int main(int argc, char **argv)
{
	unsigned x = 0;
	unsigned long left = ULONG_MAX;
	bool both = false;

	work_init("calls");
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--syscalls"))
			burn = false;
		else if (!strcmp(argv[i], "--both"))
			both = true;
		else if (!strcmp(argv[i], "--null"))
			null = true;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			work_limit(work_number(argv[i], argv[i + 1])), i++;
		else if (!strcmp(argv[i], "--iterations") && i + 1 < argc)
			left = (unsigned long)work_number(argv[i], argv[i + 1]), i++;
		else
			work_usage("unknown option '%s'", argv[i]);
	}
	zero = open("/dev/zero", O_RDONLY);
	while (left-- && !work_over()) {
		x = level_1(x);
		burn ^= both;
	}
	work_summary();
	return x == 1;
}
