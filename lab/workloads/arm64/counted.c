/*
 * counted [--loops N] [--batch M] [--calls N]
 *
 * N loops of six instructions each (a million, unless told), one batch of M (all) after the other;
 * after each batch so many system calls. So the retired instructions in user space are known: 6 N,
 * and per batch a few. Prints N and the calls.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static void count_down(uint64_t loops)
{
	__asm__ volatile("1:\n"
			 "	nop\n"
			 "	nop\n"
			 "	nop\n"
			 "	nop\n"
			 "	subs %0, %0, #1\n"
			 "	b.ne 1b\n"
			 : "+r"(loops)
			 :
			 : "cc");
}

int main(int argc, char **argv)
{
	uint64_t loops = 1000000, batch = 0, calls = 0, made = 0;

	work_init("counted");
	for (int i = 1; i < argc; i += 2) {
		uint64_t value = (uint64_t)work_number(argv[i], argv[i + 1]);
		if (!strcmp(argv[i], "--loops"))
			loops = value;
		else if (!strcmp(argv[i], "--batch"))
			batch = value;
		else if (!strcmp(argv[i], "--calls"))
			calls = value;
		else
			work_usage("unknown option '%s': expected --loops, --batch, --calls",
				   argv[i]);
	}
	for (uint64_t left = loops; left && !work_over();) {
		uint64_t now = batch && batch < left ? batch : left;
		count_down(now);
		left -= now;
		for (uint64_t i = 0; i < calls; i++, made++)
			syscall(SYS_getppid);
	}
	printf("counted: loops=%llu calls=%llu\n", (unsigned long long)loops,
	       (unsigned long long)made);
	work_summary();
	return 0;
}
