/* What the workloads of the lab share: the end by SIGTERM or by time, and the closing line. */
#ifndef VLAB_WORKLOAD_COMMON_H
#define VLAB_WORKLOAD_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#ifndef __x86_64__
#include <unistd.h>
#endif

/* SIGTERM and SIGINT from now on only make work_over() true. */
void work_init(const char *name);

/*
 * For programs that cannot ask work_over() often: a thread of its own waits for the end, prints the
 * summary and leaves with status 0, whatever the program is doing. Call it before other threads.
 */
void work_init_abrupt(const char *name);

/* Ends by itself after this many seconds; 0 = never. */
void work_limit(double seconds);

/* True once SIGTERM came or the time is up. Cheap enough to ask every millisecond. */
bool work_over(void);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t work_now(void);

/* The next of a fixed series of random numbers; `*state` is not 0. Programs vary the length of
 * their turns by it: a program that repeats itself can fall into step with samples, which then
 * always meet the same function. */
static inline uint64_t work_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* read(2), inline where it can be: the C library's function has no frame in call chains. */
static inline long work_read(int fd, void *bytes, size_t size)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(0L), "D"((long)fd), "S"(bytes), "d"(size)
			 : "rcx", "r11", "memory");
	return result;
#else
	return read(fd, bytes, size);
#endif
}

/* A system call that does next to nothing, inline as work_read(). */
static inline unsigned work_null(void)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(110L /* getppid */)
			 : "rcx", "r11", "memory");
	return (unsigned)result;
#else
	return (unsigned)getppid();
#endif
}

/* Sleeps, but not beyond a SIGTERM. */
void work_sleep(double seconds);

/* What the scheduler's books have of a thread, by its /proc/PID/schedstat, in nanoseconds: how long
 * it was on a CPU, and how long it was runnable and waited for one. Zeros: it is not there. */
struct work_schedstat {
	unsigned long long on_cpu, delay;
};
struct work_schedstat work_schedstat(pid_t pid);

/* "NAME: pid=… user_s=… system_s=… elapsed_s=… run_delay_s=…", to stdout. */
void work_summary(void);

/* The value of an option such as "--seconds"; leaves with status 2 when it is not a number >= 0. */
double work_number(const char *option, const char *text);

/* Leaves with status 2 and one sentence. */
_Noreturn void work_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
