/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of a VM's cycles that TLB misses cost, from intervals whose costs are known. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyze/model/tlb_cost.h"
#include "make_recording.h"

#define NAME "test_tlb_cost.rec"
#define RECIPE                                                                                     \
	"interval instructions 1000000\nper vcpu\ncount instructions cycles dTLB-load-misses "     \
	"iTLB-load-misses branch-misses\n"

static const uint32_t all_live[] = {VP_LIVE_ALL, VP_LIVE_ALL, VP_LIVE_ALL, VP_LIVE_ALL,
				    VP_LIVE_ALL};

enum { EACH = 20, OTHER_EACH = 15, NOISE = 2000, ROWS = 100 };

/* A number below `below`, the same in each run. */
static uint32_t next(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)*state * below >> 32);
}

/* Intervals of a VM with these costs of a miss; `twice`: branch misses are twice the TLB's. */
static void record_vm(struct made *made, unsigned vm, unsigned rows, unsigned each, bool twice)
{
	uint32_t state = 7 + vm;

	for (unsigned i = 0; i < rows; i++) {
		uint64_t data = next(&state, 20000), code = next(&state, 3000),
			 branches = twice ? 2 * (data + code) : next(&state, 5000);
		if (twice)
			code = data;
		const uint64_t counts[] = {1000000,
					   1000000 + each * (data + code) + OTHER_EACH * branches +
					       next(&state, NOISE),
					   data, code, branches};
		made_interval(made, vm, i, i + 1, vm, 0, 0, 5, counts, all_live);
	}
}

static bool cost_of(const char *recipe, unsigned rows, unsigned vm, bool twice,
		    struct vp_tlb_cost *cost)
{
	struct vp_interval_recording rec;
	struct made made;

	made_begin(&made, NAME, 2);
	temporary_file(NAME "/recipe", recipe, strlen(recipe));
	record_vm(&made, 0, rows, EACH, twice);
	record_vm(&made, 1, rows, 2 * EACH, twice);
	made_end(&made, ROWS + 1);
	expect_no_error(vp_interval_recording_open(NAME, &rec));
	bool known = vp_tlb_cost_of_vm(&rec, &rec.vms.at[vm], cost);
	vp_interval_recording_close(&rec);
	return known;
}

static void test_cost_of_each_vm(void **state)
{
	struct vp_tlb_cost cost[2];

	for (unsigned vm = 0; vm < 2; vm++) {
		assert_true(cost_of(RECIPE, ROWS, vm, false, &cost[vm]));
		assert_int_equal(cost[vm].intervals, ROWS);
		/* 11.5 misses per 1000 instructions on average. */
		assert_true(fabs(cost[vm].misses - 11.5) < 1.5);
		assert_true(fabs(cost[vm].each - EACH * (1 + vm)) < 0.2 * (1 + vm));
		double cycles = 1000 + cost[vm].misses * EACH * (1 + vm) + OTHER_EACH * 2.5;
		double expected = 100 * cost[vm].misses * EACH * (1 + vm) / cycles;
		assert_true(fabs(cost[vm].percent - expected) < 0.5);
		assert_true(cost[vm].error > 0 && cost[vm].error < 0.5);
	}
}

/* What cannot be known is not said. */
static void test_unknown(void **state)
{
	static const char *const without[] = {
	    "interval time 1ms\nper vcpu\ncount wakeups cycles dTLB-load-misses iTLB-load-misses "
	    "branch-misses\n",
	    "interval instructions 1000000\nper vcpu\ncount instructions wakeups dTLB-load-misses "
	    "iTLB-load-misses branch-misses\n",
	    "interval instructions 1000000\nper vcpu\ncount instructions cycles branches wakeups "
	    "branch-misses\n",
	    "interval instructions 1000000\nper task\ncount instructions cycles dTLB-load-misses "
	    "iTLB-load-misses branch-misses\n"};
	struct vp_tlb_cost cost;

	for (size_t i = 0; i < VP_ARRAY_SIZE(without); i++)
		assert_false(cost_of(without[i], ROWS, 0, false, &cost));
	assert_false(cost_of(RECIPE, 30, 0, false, &cost));
	assert_true(cost_of(RECIPE, 60, 0, false, &cost));
	/* Branch misses are a multiple of TLB misses: whose cycles these are is not known. */
	assert_false(cost_of(RECIPE, ROWS, 0, true, &cost));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cost_of_each_vm),
					   cmocka_unit_test(test_unknown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
