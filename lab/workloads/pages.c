/*
 * pages [--mib N] [--huge 1] [--rounds N] [--loops N]
 *
 * Reads one byte of each page of 4 KiB of N MiB (64) of memory, all of them in each of N rounds
 * (10), in an order that no two neighbours follow each other in; each after N loops (0) of two
 * instructions. Each access needs a translation that a TLB smaller than the memory no longer has.
 * With --huge 1, the memory is of pages of 2 MiB. Prints the accesses.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE = 2 << 20, STRIDE = 1021 /* pages, prime */ };

__attribute__((noinline)) static uint64_t read_pages(const volatile uint8_t *memory, uint64_t pages,
						     uint64_t loops)
{
	uint64_t sum = 0;

	for (uint64_t i = 0, page = 0; i < pages; i++, page = (page + STRIDE) % pages) {
		sum += memory[page * PAGE];
		for (uint64_t left = loops; left; left--)
			__asm__ volatile("");
	}
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t mib = 64, rounds = 10, loops = 0, done = 0, sum = 0;
	bool huge = false;

	work_init("pages");
	for (int i = 1; i < argc; i += 2) {
		double value = work_number(argv[i], argv[i + 1]);
		if (!strcmp(argv[i], "--mib") && value >= 1)
			mib = (uint64_t)value;
		else if (!strcmp(argv[i], "--huge"))
			huge = value != 0;
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (uint64_t)value;
		else if (!strcmp(argv[i], "--loops"))
			loops = (uint64_t)value;
		else
			work_usage("unknown option '%s': expected --mib, --huge, --rounds, --loops",
				   argv[i]);
	}
	uint64_t size = mib << 20;
	uint8_t *memory =
	    mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		work_usage("no memory of %llu MiB", (unsigned long long)mib);
	memory += -(uintptr_t)memory % HUGE;
	madvise(memory, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	for (; done < rounds && !work_over(); done++)
		sum += read_pages(memory, size / PAGE, loops);
	printf("pages: accesses=%llu sum=%llu\n", (unsigned long long)(done * (size / PAGE)),
	       (unsigned long long)sum);
	work_summary();
	return 0;
}
