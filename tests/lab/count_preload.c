/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * count-preload.so, for LD_PRELOAD: what a program's first thread costs, by libvperf. At its end it
 * adds a line to $COUNT_FILE: 'program=NAME way=N', and what was counted of each of $COUNT_EVENTS,
 * names with commas between. With $COUNT_PERIOD there is a signal each so many of the first event,
 * and the file gets a line for each, with where that was in the program's file, in hexadecimal, or
 * - if it was in a library.
 */
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "vperf/counters.h"

enum { MAX_SAMPLES = 1 << 16 };

static struct vperf_counters *counters;
static const char *events[VPERF_MAX_EVENTS];
static unsigned n_events;
static uintptr_t base, end, samples[MAX_SAMPLES];
static volatile unsigned n_samples;

static void on_overflow(int number, siginfo_t *info, void *context)
{
	const ucontext_t *interrupted = context;

	if (n_samples == MAX_SAMPLES)
		return;
#if defined(__x86_64__)
	samples[n_samples] = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP];
#else
	samples[n_samples] = (uintptr_t)interrupted->uc_mcontext.pc;
#endif
	n_samples++;
}

/* The first object is the program. */
static int take_object(struct dl_phdr_info *info, size_t size, void *context)
{
	base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return 1;
}

static void find_events(void)
{
	char *names = getenv("COUNT_EVENTS"), *rest = NULL;

	for (char *name = strtok_r(names, ",", &rest); name && n_events < VPERF_MAX_EVENTS;
	     name = strtok_r(NULL, ",", &rest))
		events[n_events++] = name;
}

static __attribute__((constructor)) void begin(void)
{
	const char *period = getenv("COUNT_PERIOD");
	struct sigaction action = {.sa_sigaction = on_overflow,
				   .sa_flags = SA_SIGINFO | SA_RESTART};
	struct vperf_options options = {.size = sizeof(options)};
	struct vperf_error error = {0};

	if (!getenv("COUNT_EVENTS"))
		return;
	find_events();
	if (period) {
		options.signal = SIGRTMIN + 1;
		options.period = strtoull(period, NULL, 10);
		sigaction(options.signal, &action, NULL);
		dl_iterate_phdr(take_object, NULL);
	}
	if (vperf_counters_open(events, n_events, &options, &counters, &error) ||
	    vperf_counters_start(counters)) {
		fprintf(stderr, "count-preload: %s\n", error.text);
		exit(1);
	}
}

static void write_samples(FILE *file)
{
	for (unsigned i = 0; i < n_samples; i++)
		if (samples[i] >= base && samples[i] < end)
			fprintf(file, "%" PRIxPTR "\n", samples[i] - base);
		else
			fprintf(file, "-\n");
}

static __attribute__((destructor)) void finish(void)
{
	uint64_t values[VPERF_MAX_EVENTS];
	const char *name = getenv("COUNT_FILE");

	if (!counters || !name || vperf_counters_stop(counters, values))
		return;
	FILE *file = fopen(name, "a");
	if (!file)
		return;
	fprintf(file, "program=%s way=%d", program_invocation_short_name,
		vperf_counters_way(counters));
	for (unsigned i = 0; i < n_events; i++)
		fprintf(file, " %s=%" PRIu64, events[i], values[i]);
	fprintf(file, " samples=%u\n", n_samples);
	write_samples(file);
	fclose(file);
}
