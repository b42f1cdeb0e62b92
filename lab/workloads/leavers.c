/*
 * leavers [--seconds S]: processes that end while another one runs. Each is forked, computes, fills
 * a file in memory, and ends in leave_3(), called by leave_1() and leave_2(). The kernel frees the
 * file after the process's memory, and lets others run meanwhile. The parent burns time in
 * stay_6(), called by stay_1() to stay_5(), whose stack is at the same addresses. Built with frame
 * pointers.
 */
#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_BYTES = 24 << 20, CHILDREN = 3, ROUNDS = 200000 };

/* exit_group(2) without a function of the C library, which has no frame. */
__attribute__((noipa)) static unsigned leave_3(unsigned x)
{
	int fd = memfd_create("leavers", 0);

	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	for (volatile unsigned i = 0; i < 10 * ROUNDS; i++) /* its mappings are read meanwhile */
		x += i;
	if (fd < 0 || posix_fallocate(fd, 0, FILE_BYTES))
		_exit(1);
#ifdef __x86_64__
	__asm__ volatile("syscall" : : "a"((long)SYS_exit_group), "D"(0L) : "rcx", "r11", "memory");
#endif
	_exit(x == 1);
}

__attribute__((noipa)) static unsigned stay_6(unsigned x)
{
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	for (volatile unsigned i = 0; i < ROUNDS; i++)
		x += i;
	return x;
}

#define LEVEL(kind, n, below)                                                                      \
	__attribute__((noipa)) static unsigned kind##_##n(unsigned x)                              \
	{                                                                                          \
		x = kind##_##below(x + n);                                                         \
		__asm__ volatile("" : "+r"(x)); /* no tail call */                                 \
		return x;                                                                          \
	}
LEVEL(leave, 2, 3)
LEVEL(leave, 1, 2)
LEVEL(stay, 5, 6)
LEVEL(stay, 4, 5)
LEVEL(stay, 3, 4)
LEVEL(stay, 2, 3)
LEVEL(stay, 1, 2)

int main(int argc, char **argv)
{
	unsigned x = 0, children = 0, failed = 0;
	unsigned long started = 0;
	int status;

	work_init("leavers");
	if (argc == 3)
		work_limit(work_number(argv[1], argv[2]));
	else if (argc != 1)
		work_usage("expected --seconds S or nothing");
	while (!work_over()) {
		for (; children < CHILDREN; children++, started++) {
			pid_t pid = fork();
			if (pid < 0)
				work_usage("cannot fork");
			if (!pid)
				leave_1(x);
		}
		x = stay_1(x);
		for (; waitpid(-1, &status, WNOHANG) > 0; children--)
			failed += status != 0;
	}
	printf("leavers: started=%lu failed=%u\n", started, failed);
	work_summary();
	return x == 1;
}
