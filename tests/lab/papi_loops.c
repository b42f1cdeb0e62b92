/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * papi-loops [--loops N] [--overflow PERIOD | --profile] EVENT...: a client of PAPI that knows what
 * it does. Each of three threads, which run at the same time on CPU 0, makes n times 20 rounds of N
 * (250000) loops of six instructions, and prints the counts that PAPI returns: 'thread=N
 * expected=INSTRUCTIONS values=...'. With --overflow also the number of overflows of the first
 * event that PAPI reported, and of those whose address was in the loop: 'signals=N in_loop=N'; and
 * for each of the others, if the event is instructions, how many of them were left of its round
 * when it was due: 'outside=N,...'. With --profile, only what PAPI_profil() and PAPI_sprofil() of
 * the first event return: 'profil=STATUS sprofil=STATUS'. PAPI is looked for when it runs.
 */
#include <dlfcn.h>
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "known_loop.h"

enum { THREADS = 3, MAX_EVENTS = 4, ROUNDS = 20, INSTRUCTIONS = 6, MAX_OUTSIDE = 256 };
/* As papi.h of version 7.0 has them. */
enum { VERSION = 7 << 24, NONE = -1 };

/* PAPI_sprofil_t */
struct range {
	void *buckets;
	unsigned bytes;
	void *begin;
	unsigned scale;
};

struct papi {
	int (*init)(int);
	int (*thread_init)(unsigned long (*)(void));
	int (*create)(int *);
	int (*add)(int, const char *);
	int (*start)(int);
	int (*stop)(int, long long *);
	int (*code)(const char *, int *);
	int (*overflow)(int, int, int, int, void (*)(int, void *, long long, void *));
	int (*profil)(void *, unsigned, void *, unsigned, int, int, int, int);
	int (*sprofil)(struct range *, int, int, int, int, int);
};

enum { LOOP_BYTES = 64 }; /* known_loop() has no more */
static __thread unsigned long signals, in_loop, outside[MAX_OUTSIDE];

static struct papi papi;
static char **events;
static int n_events, period;
static unsigned long loops = 250000;

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		errx(1, "%s", dlerror());
	return found;
}

static void find_papi(void)
{
	void *library = dlopen("libpapi.so.7.0", RTLD_NOW);

	if (!library)
		errx(1, "%s", dlerror());
	papi = (struct papi){function(library, "PAPI_library_init"),
			     function(library, "PAPI_thread_init"),
			     function(library, "PAPI_create_eventset"),
			     function(library, "PAPI_add_named_event"),
			     function(library, "PAPI_start"),
			     function(library, "PAPI_stop"),
			     function(library, "PAPI_event_name_to_code"),
			     function(library, "PAPI_overflow"),
			     function(library, "PAPI_profil"),
			     function(library, "PAPI_sprofil")};
	if (papi.init(VERSION) != VERSION || papi.thread_init(pthread_self))
		errx(1, "PAPI cannot be initialized");
}

static void check(const char *what, int status)
{
	if (status)
		errx(1, "%s: PAPI says %d", what, status);
}

static void on_overflow(int set, void *address, long long vector, void *context)
{
	unsigned long round = loops * INSTRUCTIONS;

	signals++;
	if ((uintptr_t)address - (uintptr_t)known_loop < LOOP_BYTES)
		in_loop++;
	else if (signals - in_loop <= MAX_OUTSIDE)
		outside[signals - in_loop - 1] =
		    (round - signals * (unsigned long)period % round) % round;
}

static void ask_for_overflow(int set)
{
	int code;

	check(events[0], papi.code(events[0], &code));
	check("overflow", papi.overflow(set, code, period, 0, on_overflow));
}

static void ask_for_profile(void)
{
	static uint16_t buckets[LOOP_BYTES];
	struct range range = {buckets, sizeof(buckets), (void *)known_loop, 65536};
	int set = NONE, code, profil;

	check("create", papi.create(&set));
	check(events[0], papi.add(set, events[0]));
	check(events[0], papi.code(events[0], &code));
	profil = papi.profil(range.buckets, range.bytes, range.begin, range.scale, set, code,
			     1000000, 0);
	printf("profil=%d sprofil=%d\n", profil, papi.sprofil(&range, 1, set, code, 1000000, 0));
}

static void print_overflows(void)
{
	printf(" signals=%lu in_loop=%lu outside=", signals, in_loop);
	for (unsigned long i = 0; i < signals - in_loop && i < MAX_OUTSIDE; i++)
		printf("%s%lu", i ? "," : "", outside[i]);
}

static void *work(void *number)
{
	unsigned long rounds = ROUNDS * ((unsigned long)number + 1);
	long long values[MAX_EVENTS] = {0};
	int set = NONE;

	check("create", papi.create(&set));
	for (int i = 0; i < n_events; i++)
		check(events[i], papi.add(set, events[i]));
	if (period)
		ask_for_overflow(set);
	check("start", papi.start(set));
	for (unsigned long i = 0; i < rounds; i++) {
		known_loop(loops);
		sched_yield();
	}
	check("stop", papi.stop(set, values));
	flockfile(stdout);
	printf("thread=%lu expected=%lu values=%lld", (unsigned long)number,
	       rounds * loops * INSTRUCTIONS, values[0]);
	for (int i = 1; i < n_events; i++)
		printf(",%lld", values[i]);
	if (period)
		print_overflows();
	printf("\n");
	funlockfile(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	bool profile = false;
	cpu_set_t cpu;

	if (argc > 3 && !strcmp(argv[1], "--loops")) {
		loops = strtoul(argv[2], NULL, 10);
		argc -= 2;
		argv += 2;
	}
	if (argc > 3 && !strcmp(argv[1], "--overflow")) {
		period = atoi(argv[2]);
		argc -= 2;
		argv += 2;
	}
	if (argc > 2 && !strcmp(argv[1], "--profile")) {
		profile = true;
		argc--;
		argv++;
	}
	if (argc < 2 || argc > MAX_EVENTS + 1)
		errx(2, "usage: papi-loops [--loops N] [--overflow PERIOD | --profile] EVENT...");
	events = argv + 1;
	n_events = argc - 1;
	find_papi();
	if (profile) {
		ask_for_profile();
		return 0;
	}
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	for (unsigned long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
