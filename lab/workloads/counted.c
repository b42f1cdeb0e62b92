/*
 * counted [--loops N] [--batch M] [--calls N] [--wait S]
 *
 * N loops of six instructions each (a million, unless told), one batch of M (all) after the other;
 * after each batch so many system calls. So the retired instructions in user space are known: 6 N,
 * and per batch a few. Waits S seconds before. Prints N, the calls, how long all that took,
 * how long of it the thread waited for a CPU, and how long its parent was on one.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __aarch64__
#define DECREMENT_AND_LOOP "	subs %0, %0, #1\n	b.ne 1b\n"
#else
#define DECREMENT_AND_LOOP "	dec %0\n	jnz 1b\n"
#endif

__attribute__((noinline)) static void count_down(uint64_t loops)
{
	__asm__ volatile("1:\n"
			 "	nop\n"
			 "	nop\n"
			 "	nop\n"
			 "	nop\n" DECREMENT_AND_LOOP
			 : "+r"(loops)
			 :
			 : "cc");
}

int main(int argc, char **argv)
{
	uint64_t loops = 1000000, batch = 0, calls = 0, made = 0;
	double wait = 0;

	work_init("counted");
	for (int i = 1; i < argc; i += 2) {
		double value = work_number(argv[i], argv[i + 1]);
		if (!strcmp(argv[i], "--loops"))
			loops = (uint64_t)value;
		else if (!strcmp(argv[i], "--batch"))
			batch = (uint64_t)value;
		else if (!strcmp(argv[i], "--calls"))
			calls = (uint64_t)value;
		else if (!strcmp(argv[i], "--wait"))
			wait = value;
		else
			work_usage("unknown option '%s': expected --loops, --batch, --calls, "
				   "--wait",
				   argv[i]);
	}
	work_sleep(wait);
	const struct work_schedstat own = work_schedstat(getpid());
	const struct work_schedstat parent = work_schedstat(getppid());
	uint64_t begin = work_now();
	for (uint64_t left = loops; left && !work_over();) {
		uint64_t now = batch && batch < left ? batch : left;
		count_down(now);
		left -= now;
		for (uint64_t i = 0; i < calls; i++, made++)
			syscall(SYS_getppid);
	}
	uint64_t passed = work_now() - begin;
	printf("counted: loops=%llu calls=%llu ns=%llu delay_ns=%llu parent_ns=%llu\n",
	       (unsigned long long)loops, (unsigned long long)made, (unsigned long long)passed,
	       work_schedstat(getpid()).delay - own.delay,
	       work_schedstat(getppid()).on_cpu - parent.on_cpu);
	work_summary();
	return 0;
}
