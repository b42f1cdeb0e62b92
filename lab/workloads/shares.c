/*
 * shares NAME=PERCENT... [--procs N] [--threads N] [--seconds S] [--iterations N]
 *
 * Functions of known share: share_a gets the first percentage, share_b the second, … Every slice
 * runs each function in turn, for a number of identical loop rounds in proportion to its share, so
 * that a share of time is a share of rounds however fast the CPU is at the moment. Slices have
 * random lengths.
 */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARES_MAX 8
#define SLICE_ROUNDS                                                                               \
	100000 /* of all functions in an average slice: well below 1 ms on bare metal */

typedef uint64_t share_fn(uint64_t seed, uint64_t rounds);

/*
 * The body is the same text in every function, 16-byte aligned and with a dependency from round to
 * round, so that all cost the same per round. A macro, because a shared callee would get the time.
 */
#define SHARE_FUNCTION(name)                                                                       \
	__attribute__((noinline, noclone, aligned(64))) uint64_t name(uint64_t seed,               \
								      uint64_t rounds)             \
	{                                                                                          \
		for (uint64_t i = 0; i < rounds; i++) {                                            \
			seed = seed * 6364136223846793005u + 1442695040888963407u;                 \
			__asm__ volatile("" : "+r"(seed));                                         \
		}                                                                                  \
		return seed + sizeof(#name);                                                       \
	}

/* Separate symbols, kept apart although their bodies are alike. */
share_fn share_a, share_b, share_c, share_d, share_e, share_f, share_g, share_h;

SHARE_FUNCTION(share_a)
SHARE_FUNCTION(share_b)
SHARE_FUNCTION(share_c)
SHARE_FUNCTION(share_d)
SHARE_FUNCTION(share_e)
SHARE_FUNCTION(share_f)
SHARE_FUNCTION(share_g)
SHARE_FUNCTION(share_h)

static share_fn *const functions[SHARES_MAX] = {share_a, share_b, share_c, share_d,
						share_e, share_f, share_g, share_h};

struct plan {
	size_t count;
	const char *names[SHARES_MAX];
	uint64_t rounds[SHARES_MAX]; /* per slice */
	uint64_t slices;             /* to do; 0 = until told to stop */
	int procs, threads;
};

static volatile uint64_t sink;

static void *burn(void *argument)
{
	const struct plan *plan = argument;
	uint64_t seed = 1, random = 1;
	uint64_t slices = 0;

	while (plan->slices ? slices < plan->slices : !work_over()) {
		uint64_t part = 512 + work_random(&random) % 1024; /* of 1024, 1 on average */

		for (size_t i = 0; i < plan->count; i++)
			seed = functions[i](seed, plan->rounds[i] * part / 1024);
		slices++;
	}
	sink = seed;
	printf("shares: pid=%d slices=%llu\n", getpid(), (unsigned long long)slices);
	return NULL;
}

static void add_share(struct plan *plan, const char *word, const char *equals)
{
	double percent = work_number(word, equals + 1);

	if (plan->count == SHARES_MAX)
		work_usage("at most %d shares", SHARES_MAX);
	plan->names[plan->count] = strndup(word, (size_t)(equals - word));
	plan->rounds[plan->count++] = (uint64_t)(percent / 100 * SLICE_ROUNDS + 0.5);
}

static void parse(struct plan *plan, int argc, char **argv)
{
	uint64_t total = 0;

	for (int i = 1; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');

		if (argv[i][0] != '-' && equals) {
			add_share(plan, argv[i], equals);
			continue;
		}
		if (!strcmp(argv[i], "--procs"))
			plan->procs = (int)work_number(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--threads"))
			plan->threads = (int)work_number(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			work_limit(work_number(argv[i], argv[i + 1]));
		else if (!strcmp(argv[i], "--iterations"))
			plan->slices = (uint64_t)work_number(argv[i], argv[i + 1]);
		else
			work_usage(
			    "'%s' is no share and no option: expected NAME=PERCENT, --procs, "
			    "--threads, --seconds or --iterations",
			    argv[i]);
		i++;
	}
	for (size_t i = 0; i < plan->count; i++) {
		total += plan->rounds[i];
		printf("shares: share_%c is %s, %.3f %%\n", (char)('a' + i), plan->names[i],
		       (double)plan->rounds[i] * 100 / SLICE_ROUNDS);
	}
	if (total < SLICE_ROUNDS - 10 || total > SLICE_ROUNDS + 10)
		work_usage("the shares must add up to 100 %%");
}

static void run_threads(struct plan *plan)
{
	pthread_t *threads = calloc((size_t)plan->threads, sizeof(*threads));

	if (!threads)
		abort();
	for (int i = 1; i < plan->threads; i++)
		if (pthread_create(&threads[i], NULL, burn, plan))
			work_usage("a thread cannot be made");
	burn(plan);
	for (int i = 1; i < plan->threads; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	work_summary();
}

int main(int argc, char **argv)
{
	struct plan plan = {.procs = 1, .threads = 1};
	pid_t children[256];
	int count = 0;

	work_init("shares");
	parse(&plan, argc, argv);
	if (plan.procs < 1 || plan.procs > 256 || plan.threads < 1 || plan.threads > 256)
		work_usage("--procs and --threads go from 1 to 256");
	fflush(stdout);
	while (count < plan.procs - 1) {
		children[count] = fork();
		if (children[count] == 0) {
			run_threads(&plan);
			return 0;
		}
		if (children[count] > 0)
			count++;
		else
			work_usage("a process cannot be made");
	}
	run_threads(&plan);
	for (int i = 0; i < count; i++)
		kill(children[i], SIGTERM);
	for (int i = 0; i < count; i++)
		waitpid(children[i], NULL, 0);
	return 0;
}
