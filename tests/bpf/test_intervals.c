/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interval programs in the kernel: everything is in one interval, and in no other. */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "base/macros.h"
#include "collect/programs/intervals_source.h"
#include "intervals_rig.h"
#include "schema/schema.h"

enum { MS = 1000000, RING = 1 << 20 };

static void expect_head(const struct rig *rig)
{
	vp_vec_each (&rig->found, interval) {
		bool is_last = interval == &rig->found.at[rig->found.count - 1];
		assert_int_equal(interval->head.owner, getpid());
		assert_int_equal(interval->head.tid, vp_own_tid());
		assert_int_equal(interval->head.vcpu, VP_VCPU_UNKNOWN);
		assert_int_equal(interval->head.flags,
				 is_last ? VP_INTERVAL_PARTIAL | VP_INTERVAL_LAST : 0);
	}
}

/* Every fourth exit closes one. */
static void test_by_exits(void **state)
{
	const struct rig_options options = {VP_UNIT_EXITS, 4, 1, RING};
	struct rig *rig = rig_open(&options);

	rig_entry(rig);
	for (uint32_t i = 0; i < 402; i++) {
		rig_exit(rig, i % 2 ? RIG_HALT : RIG_HYPERCALL);
		rig_entry(rig);
	}
	rig_end(rig);
	rig_drain(rig);
	const intervals *found = &rig->found;
	assert_int_equal(found->count, 101);
	rig_expect_gapless(found);
	expect_head(rig);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(found->at[i].values[VP_COUNT_exits], 4);
	assert_int_equal(rig_sum(found, VP_COUNT_exits), 402);
	assert_int_equal(rig_sum(found, VP_COUNT_entries), 403);
	assert_int_equal(rig_sum(found, VP_COUNT_BY_CLASS + VP_EXITS_halt), 201);
	assert_int_equal(rig_sum(found, VP_COUNT_BY_CLASS + VP_EXITS_hypercall), 201);
	uint64_t in_exits = rig_sum(found, VP_COUNT_time_exits);
	assert_int_equal(rig_sum(found, VP_COUNT_TIME_BY_CLASS + VP_EXITS_halt) +
			     rig_sum(found, VP_COUNT_TIME_BY_CLASS + VP_EXITS_hypercall),
			 in_exits);
	/* From the first entry to the end it was in a guest or in an exit. */
	assert_true(in_exits > 0);
	assert_true(in_exits + rig_sum(found, VP_COUNT_time_guest) <=
		    rig_sum(found, VP_COUNT_time));
	assert_int_equal(rig_sum(found, VP_COUNT_time_running), rig_sum(found, VP_COUNT_time));
	assert_int_equal(rig->tasks, 1);
	rig_close(rig);
}

static void test_what_is_injected(void **state)
{
	const struct rig_options options = {VP_UNIT_EXITS, 3, 1, RING};
	struct rig *rig = rig_open(&options);

	rig_entry(rig);
	for (uint32_t i = 0; i < 100; i++) {
		rig_exit(rig, RIG_PAGE_FAULT);
		if (i % 4 == 0) /* it was no page fault, after all */
			vp_run(rig->programs->progs.note_mmio, 0, 0, 0);
		vp_run(rig->programs->progs.note_inj_exception, i % 10 ? 13 : 14, 0, 0);
		for (uint32_t n = 0; n < i % 3; n++)
			vp_run(rig->programs->progs.note_inj_virq, 0, 0, 0);
		rig_entry(rig);
	}
	rig_end(rig);
	rig_drain(rig);
	assert_int_equal(rig->found.count, 34);
	rig_expect_gapless(&rig->found);
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_BY_CLASS + VP_EXITS_page_fault), 75);
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_BY_CLASS + VP_EXITS_mmio), 25);
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_inject_exception), 100);
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_inject_page_fault), 10);
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_inject_interrupt), 99);
	rig_close(rig);
}

/* One ends with the first entry behind a whole number of widths. */
static void test_by_time(void **state)
{
	const struct rig_options options = {VP_UNIT_TIME, MS, 1, RING};
	struct rig *rig = rig_open(&options);
	uint64_t origin = rig->programs->bss->origin, pairs = 0;

	rig_entry(rig);
	for (uint64_t until = vp_now() + 40 * MS; vp_now() < until; pairs++) {
		rig_exit(rig, RIG_HYPERCALL);
		rig_entry(rig);
	}
	rig_end(rig);
	rig_drain(rig);
	rig_expect_gapless(&rig->found);
	expect_head(rig);
	assert_true(rig->found.count >= 2 && rig->found.count <= pairs + 1);
	for (size_t i = 0; i + 1 < rig->found.count; i++) {
		const struct vp_interval *head = &rig->found.at[i].head;
		assert_true((head->time - origin) / MS > (head->begin - origin) / MS);
	}
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_exits), pairs);
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_entries), pairs + 1);
	assert_int_equal(rig->programs->bss->lost.intervals, 0);
	rig_close(rig);
}

/* Counts of the guest's kernel: narrow ones wrap around, those of the agent's programs hold as long
 * as its marker is there, and an address that cannot be read has no count. */
static void test_counts_of_a_guest(void **state)
{
	enum {
		WRAPS = VP_GUEST_faults,
		ABSENT = VP_GUEST_interrupts,
		AGENTS = VP_GUEST_system_calls
	};
	enum { MARKER = 0x6d61726b };
	static uint64_t wide, agents, marker = MARKER;
	static uint32_t narrow[2] = {UINT32_MAX - 4, 77};
	struct vp_guest_counters counters = {.narrow = 1U << WRAPS,
					     .marked = 1U << AGENTS,
					     .marker = MARKER,
					     .marker_hva = (uintptr_t)&marker};
	const struct rig_options options = {VP_UNIT_EXITS, 1, 1, RING, &counters};

	counters.hva[VP_GUEST_switches] = (uintptr_t)&wide;
	counters.hva[WRAPS] = (uintptr_t)narrow;
	counters.hva[ABSENT] = 8;
	counters.hva[AGENTS] = (uintptr_t)&agents;
	wide = (uint64_t)UINT32_MAX - 4;
	struct rig *rig = rig_open(&options);
	rig_entry(rig);
	for (uint32_t i = 0; i < 8; i++) {
		wide += 2;
		narrow[0] += 3;
		agents += 5;
		marker = i == 5 ? 0 : MARKER;
		rig_exit(rig, RIG_HYPERCALL);
		rig_entry(rig);
	}
	rig_end(rig);
	rig_drain(rig);
	const intervals *found = &rig->found;
	assert_int_equal(found->count, 9);
	for (size_t i = 0; i < 8; i++) {
		/* The marker was away at the end of the sixth, which is the seventh's begin. */
		uint32_t of_agent = i == 5 || i == 6 ? 0 : 1U << AGENTS;
		assert_int_equal(found->at[i].guest_known,
				 1U << VP_GUEST_switches | 1U << WRAPS | of_agent);
		assert_int_equal(found->at[i].guest[VP_GUEST_switches], 2);
		assert_int_equal(found->at[i].guest[WRAPS], 3);
		assert_int_equal(found->at[i].guest[AGENTS], of_agent ? 5 : 0);
	}
	rig_close(rig);
}

/* What finds no room is counted, and missing in the numbers. */
static void test_full_ring(void **state)
{
	const struct rig_options options = {VP_UNIT_EXITS, 1, 1, 4096};
	struct rig *rig = rig_open(&options);
	uint64_t missing = 0, next = 0;

	rig_entry(rig);
	for (uint32_t i = 0; i < 99; i++) {
		if (i == 60)
			rig_drain(rig);
		rig_exit(rig, RIG_HYPERCALL);
		rig_entry(rig);
	}
	rig_drain(rig);
	rig_end(rig);
	rig_drain(rig);
	vp_vec_each (&rig->found, interval) {
		assert_true(interval->head.number >= next);
		missing += interval->head.number - next;
		next = interval->head.number + 1;
	}
	assert_int_equal(next, 100);
	assert_true(missing > 0);
	assert_int_equal(rig->programs->bss->lost.intervals, missing);
	assert_int_equal(rig->found.count + missing, 100);
	rig_close(rig);
}

/* Once it is over, nothing more is said of it. */
static void test_end_is_the_end(void **state)
{
	const struct rig_options options = {VP_UNIT_EXITS, 1, 1, RING};
	struct rig *rig = rig_open(&options);

	rig_entry(rig);
	rig_end(rig);
	rig_end(rig);
	for (int i = 0; i < 3; i++) {
		rig_exit(rig, RIG_HYPERCALL);
		rig_entry(rig);
	}
	rig_drain(rig);
	assert_int_equal(rig->found.count, 1);
	assert_int_equal(rig_sum(&rig->found, VP_COUNT_entries), 1);
	rig_close(rig);
}

static void *run_vcpu(void *context)
{
	struct rig *rig = context;

	rig_entry(rig);
	rig_exit(rig, RIG_HYPERCALL);
	rig_entry(rig);
	return NULL;
}

/* Nobody is told of those that have no place: there is nothing to be done for them. */
static void test_more_vcpus_than_places(void **state)
{
	const struct rig_options options = {VP_UNIT_EXITS, 1, 2, RING};
	struct rig *rig = rig_open(&options);

	for (int i = 0; i < 4; i++) {
		pthread_t thread;
		rig_forget_pcpus(rig);
		assert_int_equal(pthread_create(&thread, NULL, run_vcpu, rig), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	rig_drain(rig);
	assert_int_equal(rig->found.count, 2);
	assert_int_equal(rig->tasks, 2);
	assert_int_equal(rig->programs->bss->lost.subjects, 2 * 3);
	rig_close(rig);
}

/* Into `context`, a struct rig: as its rings do, but through vperf's own reader. */
static void take_records(void *context, uint32_t pcpu, char *records, size_t size)
{
	struct interval interval = {0};
	struct vp_interval_value value;

	memcpy(&interval.head, records, sizeof(interval.head));
	if (interval.head.id != VP_ID_interval)
		return;
	assert_int_equal(size, sizeof(interval.head) + interval.head.values * sizeof(value));
	for (uint32_t i = 0; i < interval.head.values; i++) {
		memcpy(&value, records + sizeof(interval.head) + i * sizeof(value), sizeof(value));
		interval.values[VP_COUNT_sched_in + i] = value.value;
	}
	vp_vec_push((intervals *)context, interval);
}

/* In the order of enum vp_interval_count from sched_in on. */
static const char task_recipe[] = "interval time 5ms\n"
				  "per task\n"
				  "count sched:in sched:out sched:preempted sched:migrations "
				  "wakeups time time:running time:waiting time:blocked\n";

/* With the real scheduler: what this thread sleeps is blocked time, and each sleep ends. */
static void test_task(void **state)
{
	intervals found = {0};
	struct vp_recipe recipe;
	struct vp_intervals *programs;
	struct vp_told wakeups, comes, goes;

	expect_no_error(vp_recipe_parse("recipe", task_recipe, sizeof(task_recipe) - 1, &recipe));
	const struct vp_intervals_options options = {
	    .recipe = &recipe, .ring_bytes = RING, .take = take_records, .context = &found};
	expect_no_error(vp_intervals_open(&options, &programs));
	expect_no_error(
	    vp_intervals_watch(programs, (uint32_t)getpid(), vp_own_tid(), VP_VCPU_UNKNOWN));
	vp_told_open(&wakeups, "sched_wakeup", 0);
	vp_told_open(&goes, "sched_switch", 1);
	vp_told_open(&comes, "sched_switch", 2);
	expect_no_error(vp_intervals_begin(programs));
	uint64_t least = vp_told_read(&wakeups), least_comes = vp_told_read(&comes);
	for (int i = 0; i < 20; i++)
		vp_sleep(2 * MS);
	least = vp_told_read(&wakeups) - least;
	least_comes = vp_told_read(&comes) - least_comes;
	expect_no_error(vp_intervals_end(programs));
	expect_no_error(vp_intervals_drain(programs));
	assert_int_equal(vp_intervals_lost(programs).intervals, 0);
	assert_true(found.count >= 2);
	rig_expect_gapless(&found);
	assert_true(least > 0);
	assert_in_range(rig_sum(&found, VP_COUNT_wakeups), least, vp_told_read(&wakeups));
	assert_true(rig_sum(&found, VP_COUNT_time_blocked) >= 20 * MS);
	/* It began and ended on a pCPU; but before it was known there, it may have lost it. */
	uint64_t in = rig_sum(&found, VP_COUNT_sched_in), out = rig_sum(&found, VP_COUNT_sched_out);
	assert_in_range(in, least_comes, vp_told_read(&comes));
	assert_in_range(in, out, out + 1);
	assert_true(out <= vp_told_read(&goes));
	vp_told_close(&wakeups);
	vp_told_close(&goes);
	vp_told_close(&comes);
	vp_intervals_free(programs);
	vp_recipe_deinit(&recipe);
	vp_vec_deinit(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by_exits),
	    cmocka_unit_test(test_what_is_injected),
	    cmocka_unit_test(test_by_time),
	    cmocka_unit_test(test_counts_of_a_guest),
	    cmocka_unit_test(test_full_ring),
	    cmocka_unit_test(test_end_is_the_end),
	    cmocka_unit_test(test_more_vcpus_than_places),
	    cmocka_unit_test(test_task),
	};

	if (!vp_kernel_takes_programs("intervals"))
		return VP_SKIPPED;
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
