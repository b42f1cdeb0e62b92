/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counter-read WAY READS: how long a read of one counter, 'instructions:u', takes in each way that
 * there is; `user4`, `call4` and `lent4` read a set of four: `user`, `call` and `lent` of libvperf;
 * `view`, vperf_view_read() in the loop itself, and `loop`, the loop without it; `bare`, the
 * instructions that read perf's page and nothing else; `read`, read(2) of one event; `papi`,
 * PAPI_read() of the libpapi that is found. Prints WAY and ns; under icount a nanosecond is an
 * instruction.
 */
#include <dlfcn.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "counters/user_read.h"
#include "vperf/counters.h"

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void say(const char *way, double begin, unsigned long reads)
{
	printf("%s %.1f\n", way, (now_ns() - begin) / (double)reads);
}

static void time_library(const char *name, uint32_t way, uint32_t flags, unsigned n,
			 unsigned long reads)
{
	const char *const events[] = {"instructions:u", "cycles:u", "instructions:u", "cycles:u"};
	struct vperf_options options = {.size = sizeof(options), .way = way, .flags = flags};
	struct vperf_counters *counters;
	struct vperf_error error;
	uint64_t values[4];

	if (vperf_counters_open(events, n, &options, &counters, &error))
		errx(1, "%s", error.text);
	if (vperf_counters_start(counters) || vperf_counters_read(counters, values))
		errx(1, "cannot read");
	double begin = now_ns();
	for (unsigned long i = 0; i < reads; i++)
		vperf_counters_read(counters, values);
	say(name, begin, reads);
	vperf_counters_close(counters);
}

/* The program's own code, as it would be there: what it reads is in no register before. */
static void time_view(unsigned long reads)
{
	const char *const events[] = {"instructions:u"};
	struct vperf_options options = {.size = sizeof(options), .way = VPERF_WAY_LENT};
	struct vperf_counters *counters;
	struct vperf_error error;
	uint64_t value = 0, failed = 0;

	if (vperf_counters_open(events, 1, &options, &counters, &error))
		errx(1, "%s", error.text);
	const struct vperf_view *view = vperf_counters_view(counters, VPERF_VIEW_1);
	if (!view || vperf_counters_start(counters))
		errx(1, "cannot read");
	double begin = now_ns();
	for (unsigned long i = 0; i < reads; i++) {
		failed |= (unsigned)vperf_view_read(view, 0, &value);
		__asm__ volatile("" ::"r"(value) : "memory");
	}
	say("view", begin, reads);
	begin = now_ns();
	for (unsigned long i = 0; i < reads; i++)
		__asm__ volatile("" ::: "memory");
	say("loop", begin, reads);
	if (failed)
		errx(1, "cannot read");
	vperf_counters_close(counters);
}

static int open_event(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_HARDWARE,
				       .config = PERF_COUNT_HW_INSTRUCTIONS,
#ifdef __aarch64__
				       .config1 = 2,
#endif
				       .exclude_kernel = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0)
		err(1, "perf_event_open");
	return fd;
}

static void time_read(unsigned long reads)
{
	int fd = open_event();
	uint64_t value = 0;

	double begin = now_ns();
	for (unsigned long i = 0; i < reads; i++)
		if (read(fd, &value, sizeof(value)) != sizeof(value))
			err(1, "read");
	say("read", begin, reads);
	close(fd);
}

/* What perf_event_open(2) shows, for one event, as a function. */
static __attribute__((noinline)) uint64_t
read_bare(const volatile struct perf_event_mmap_page *page)
{
	uint64_t count, value;
	uint32_t sequence;

	do {
		sequence = page->lock;
		VP_COUNTERS_BARRIER();
		count = (uint64_t)page->offset;
		if (page->index) {
			value = vp_counters_user_read(page->index - 1);
			value <<= 64 - page->pmc_width;
			count += (uint64_t)((int64_t)value >> (64 - page->pmc_width));
		}
		VP_COUNTERS_BARRIER();
	} while (page->lock != sequence);
	return count;
}

static void time_bare(unsigned long reads)
{
	int fd = open_event();
	void *page = mmap(NULL, (size_t)getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
	volatile uint64_t last;

	if (page == MAP_FAILED)
		err(1, "mmap");
	double begin = now_ns();
	for (unsigned long i = 0; i < reads; i++)
		last = read_bare(page);
	(void)last;
	say("bare", begin, reads);
	close(fd);
}

/* As papi.h of version 7.0 has them; PAPI is not needed to build this. */
static void time_papi(unsigned long reads)
{
	enum { VERSION = 7 << 24, NONE = -1 };
	void *library = dlopen("libpapi.so.7.0", RTLD_NOW);
	long long value;
	int set = NONE;

	if (!library)
		errx(1, "%s", dlerror());
	int (*init)(int) = dlsym(library, "PAPI_library_init");
	int (*create)(int *) = dlsym(library, "PAPI_create_eventset");
	int (*add)(int, const char *) = dlsym(library, "PAPI_add_named_event");
	int (*start)(int) = dlsym(library, "PAPI_start");
	int (*read_set)(int, long long *) = dlsym(library, "PAPI_read");
	if (init(VERSION) != VERSION || create(&set) || add(set, "perf::INSTRUCTIONS:u") ||
	    start(set) || read_set(set, &value))
		errx(1, "PAPI cannot count perf::INSTRUCTIONS:u");
	double begin = now_ns();
	for (unsigned long i = 0; i < reads; i++)
		read_set(set, &value);
	say("papi", begin, reads);
}

int main(int argc, char **argv)
{
	unsigned long reads = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	static const struct {
		const char *name;
		uint32_t way, flags;
		unsigned n;
	} ways[] = {
	    {"user", VPERF_WAY_USER, 0, 1},
	    {"user4", VPERF_WAY_USER, 0, 4},
	    {"call", VPERF_WAY_CALL, 0, 1},
	    {"call4", VPERF_WAY_CALL, 0, 4},
	    {"lent", VPERF_WAY_LENT, 0, 1},
	    {"lent4", VPERF_WAY_LENT, 0, 4},
	    {"exact", VPERF_WAY_LENT, VPERF_EXACT, 1},
	};

	if (!reads)
		errx(2, "usage: counter-read user[4]|call[4]|lent[4]|exact|view|bare|read|papi "
			"READS");
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i].name)) {
			time_library(ways[i].name, ways[i].way, ways[i].flags, ways[i].n, reads);
			return 0;
		}
	if (!strcmp(argv[1], "view"))
		time_view(reads);
	else if (!strcmp(argv[1], "bare"))
		time_bare(reads);
	else if (!strcmp(argv[1], "read"))
		time_read(reads);
	else if (!strcmp(argv[1], "papi"))
		time_papi(reads);
	else
		errx(2, "unknown way '%s'", argv[1]);
	return 0;
}
