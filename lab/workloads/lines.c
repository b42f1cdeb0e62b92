/*
 * lines [--kib N] [--rounds N] [--store 1]
 *
 * Loads, or stores, one byte of each cache line of 64 bytes of N KiB (16) of memory, from the first
 * to the last, in each of N rounds (100). The memory is one huge page where it fits, so that it is
 * contiguous for caches, too. Prints the accesses.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, HUGE = 2 << 20 };

/* Four instructions for each line, of which one is the access and one a branch. */
__attribute__((noinline)) static void walk(uint8_t *memory, uint64_t lines, bool store)
{
	uint8_t *at = memory, *end = memory + lines * LINE;

	if (store)
		for (; at < end; at += LINE)
			*(volatile uint8_t *)at = 1;
	else
		for (; at < end; at += LINE)
			(void)*(volatile uint8_t *)at;
}

int main(int argc, char **argv)
{
	uint64_t kib = 16, rounds = 100, done = 0;
	bool store = false;

	work_init("lines");
	for (int i = 1; i < argc; i += 2) {
		double value = work_number(argv[i], argv[i + 1]);
		if (!strcmp(argv[i], "--kib") && value >= 1)
			kib = (uint64_t)value;
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (uint64_t)value;
		else if (!strcmp(argv[i], "--store"))
			store = value != 0;
		else
			work_usage("unknown option '%s': expected --kib, --rounds, --store",
				   argv[i]);
	}
	uint64_t size = kib << 10;
	uint8_t *memory =
	    mmap(NULL, size + 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		work_usage("no memory of %llu KiB", (unsigned long long)kib);
	memory += -(uintptr_t)memory % HUGE;
	madvise(memory, (size + HUGE - 1) / HUGE * HUGE, MADV_HUGEPAGE);
	memset(memory, 1, size);
	for (; done < rounds && !work_over(); done++)
		walk(memory, size / LINE, store);
	printf("lines: accesses=%llu\n", (unsigned long long)(done * (size / LINE)));
	work_summary();
	return 0;
}
