/*
 * who [--procs P] [--threads T] [--seconds S]: P times T threads (up to 8), each with a name of its
 * own, each burning time in a function of its own. Each says who it is and where its function is,
 * so that a program counter tells which thread it was of.
 */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 8, ROUNDS = 200000 };

#define BURNER(n)                                                                                  \
	extern const char __start_who_##n[], __stop_who_##n[];                                     \
	__attribute__((noinline, section("who_" #n))) static void burn_##n(void)                   \
	{                                                                                          \
		for (volatile unsigned i = 0; i < ROUNDS; i++)                                     \
			;                                                                          \
	}
BURNER(0)
BURNER(1)
BURNER(2)
BURNER(3)
BURNER(4)
BURNER(5)
BURNER(6)
BURNER(7)

#define ENTRY(n)                                                                                   \
	{                                                                                          \
		burn_##n, __start_who_##n, __stop_who_##n                                          \
	}
static const struct {
	void (*burn)(void);
	const char *start, *stop;
} burners[MOST] = {ENTRY(0), ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4), ENTRY(5), ENTRY(6), ENTRY(7)};

static void *run(void *argument)
{
	size_t number = (size_t)argument;
	char name[16];

	snprintf(name, sizeof(name), "who-%zu", number);
	prctl(PR_SET_NAME, name);
	printf("who: pid=%d tid=%ld comm=%s from=%p to=%p\n", getpid(), syscall(SYS_gettid), name,
	       (const void *)burners[number].start, (const void *)burners[number].stop);
	while (!work_over())
		burners[number].burn();
	return NULL;
}

static void run_process(size_t first, size_t threads)
{
	pthread_t others[MOST];

	for (size_t i = 1; i < threads; i++)
		if (pthread_create(&others[i], NULL, run, (void *)(first + i)))
			work_usage("a thread cannot be made");
	run((void *)first);
	for (size_t i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
}

int main(int argc, char **argv)
{
	size_t processes = 2, threads = 2;

	work_init("who");
	for (int i = 1; i + 1 < argc; i += 2) {
		double value = work_number(argv[i], argv[i + 1]);
		if (!strcmp(argv[i], "--procs"))
			processes = (size_t)value;
		else if (!strcmp(argv[i], "--threads"))
			threads = (size_t)value;
		else if (!strcmp(argv[i], "--seconds"))
			work_limit(value);
		else
			work_usage("unknown option '%s'", argv[i]);
	}
	if (!processes || !threads || processes * threads > MOST)
		work_usage("at least one and at most %d threads are possible", MOST);
	pid_t children[MOST] = {0};
	for (size_t i = 1; i < processes; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			run_process(i * threads, threads);
			return 0;
		}
	}
	run_process(0, threads);
	for (size_t i = 1; i < processes; i++)
		if (children[i] > 0 && !kill(children[i], SIGTERM))
			waitpid(children[i], NULL, 0);
	work_summary();
	return 0;
}
