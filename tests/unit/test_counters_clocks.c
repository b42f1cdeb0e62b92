/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread's CPU time, and the bounds of the steal in it. */
#include "unit.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "counters/set.h"

enum { MS = 1000000 };

static uint64_t tick(void)
{
	return 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* A host's /proc/stat of 4,096 CPUs is 250 KiB and more. */
static void test_steal_of_many_cpus(void **state)
{
	enum { CPUS = 4096 };
	FILE *file = tmpfile();

	assert_non_null(file);
	fprintf(file, "cpu  1 2 3 4 5 6 7 999 0 0\n");
	for (int cpu = 0; cpu < CPUS; cpu++)
		if (cpu != 5) /* is offline; there are cpu50 and cpu500 */
			fprintf(file, "cpu%d 123456789 0 123456789 123456789 0 0 1234 %d 0 0\n",
				cpu, 7 * cpu);
	fprintf(file, "intr 1");
	for (int i = 0; i < 10000; i++)
		fprintf(file, " %d", i);
	fprintf(file, "\ncpu9999 1 1 1 1 1 1 1 1 1 1\n");
	assert_int_equal(fflush(file), 0);
	static const int cpus[] = {0, 1, 10, 799, 800, 1023, 1024, CPUS - 1};
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		rewind(file);
		assert_int_equal(vp_counters_steal_of(fileno(file), cpus[i]),
				 7 * (uint64_t)cpus[i] * tick());
	}
	rewind(file);
	assert_int_equal(vp_counters_steal_of(fileno(file), -1), 999 * tick());
	rewind(file);
	assert_int_equal(vp_counters_steal_of(fileno(file), CPUS), 0);
	rewind(file);
	assert_int_equal(vp_counters_steal_of(fileno(file), 5), 0);
	fclose(file);
}

/* Two readings with 10 ms of steal between them, of 100 ms of which the thread had 60. */
static struct vperf_times bounds(enum vp_counters_hypervisor hypervisor, unsigned cpus,
				 uint64_t steal_before, int cpu_before)
{
	struct vp_counters_clocks start = {.steal = steal_before, .cpu = cpu_before};
	struct vp_counters_clocks now = {.steal = steal_before + 10 * MS, .cpu = 1};
	struct vperf_times times = {
	    .wall = 100 * MS, .on_cpu = 60 * MS, .known = VPERF_KNOWN_ON_CPU};

	vp_counters_bound_stolen(hypervisor, cpus, &start, &now, &times);
	assert_int_equal(times.stolen_least, 0);
	assert_true(times.known & VPERF_KNOWN_ON_CPU);
	return times;
}

static void test_bare_metal(void **state)
{
	struct vperf_times times = bounds(VP_BARE_METAL, 1, 5 * MS, 1);

	assert_true(times.known & VPERF_KNOWN_STOLEN);
	assert_int_equal(times.stolen_most, 0);
}

/* At most the steal of the CPUs, with two ticks of each that are not shown yet, and at most the
 * thread's own time. */
static void test_shown_steal(void **state)
{
	struct vperf_times times = bounds(VP_SHOWS_STEAL, 1, 5 * MS, 1);

	assert_true(times.known & VPERF_KNOWN_STOLEN);
	assert_int_equal(times.stolen_most, 10 * MS + 2 * tick());
	times = bounds(VP_SHOWS_STEAL, 2, 5 * MS, 1);
	assert_int_equal(times.stolen_most, 10 * MS + 4 * tick());
	times = bounds(VP_SHOWS_STEAL, 3, 5 * MS, 1);
	assert_int_equal(times.stolen_most, 60 * MS);
}

/* Bound to another CPU meanwhile: the difference is of two CPUs. */
static void test_another_cpu(void **state)
{
	struct vperf_times times = bounds(VP_SHOWS_STEAL, 1, 5 * MS, 0);

	assert_true(times.known & VPERF_KNOWN_STOLEN);
	assert_int_equal(times.stolen_most, 60 * MS);
}

/* A hypervisor that has shown none so far may not show any. */
static void test_unknown_hypervisor(void **state)
{
	struct vp_counters_clocks none = {.cpu = 1};
	struct vperf_times times = {.wall = 100 * MS};

	vp_counters_bound_stolen(VP_MAY_SHOW_STEAL, 1, &none, &none, &times);
	assert_false(times.known & VPERF_KNOWN_STOLEN);
	assert_int_equal(times.stolen_most, 100 * MS);
	times = bounds(VP_MAY_SHOW_STEAL, 1, 0, 1);
	assert_true(times.known & VPERF_KNOWN_STOLEN);
	assert_int_equal(times.stolen_most, 10 * MS + 2 * tick());
}

/* The CPU to which the thread is bound, and no CPU while it may run on several. */
static void test_affinity(void **state)
{
	struct vp_counters_clocks clocks;
	cpu_set_t before, one;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	int last = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		last = CPU_ISSET(cpu, &before) ? cpu : last;
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	vp_counters_clocks_read(-1, &clocks);
	assert_int_equal(clocks.cpu, last);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	vp_counters_clocks_read(-1, &clocks);
	assert_int_equal(clocks.cpu, CPU_COUNT(&before) == 1 ? last : -1);
}

static uint64_t monotonic(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Both times are differences, and the size of the caller's struct stays. */
static void test_between(void **state)
{
	int fd = vp_counters_clocks_open();
	struct vp_counters_clocks start;
	struct vperf_times times = {.size = sizeof(times), .stolen_least = 1};
	uint64_t before = monotonic();

	assert_true(fd >= 0);
	vp_counters_clocks_read(fd, &start);
	uint64_t begun = monotonic(), ends = begun + 20 * MS;
	while (monotonic() < ends)
		;
	vp_counters_clocks_between(fd, &start, &times);
	assert_int_equal(times.size, sizeof(times));
	assert_int_equal(times.stolen_least, 0);
	assert_in_range(times.wall, ends - begun, monotonic() - before);
	assert_true(times.known & VPERF_KNOWN_ON_CPU);
	assert_in_range(times.on_cpu, 1, monotonic() - before);
	/* The same without a descriptor: only the time on the clock is known. */
	vp_counters_clocks_between(-1, &start, &times);
	assert_false(times.known & VPERF_KNOWN_ON_CPU);
	assert_int_equal(times.on_cpu, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steal_of_many_cpus),
	    cmocka_unit_test(test_bare_metal),
	    cmocka_unit_test(test_shown_steal),
	    cmocka_unit_test(test_another_cpu),
	    cmocka_unit_test(test_unknown_hypervisor),
	    cmocka_unit_test(test_affinity),
	    cmocka_unit_test(test_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
