/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recipes: what they say, what is wrong with them and where. */
#include "unit.h"

#include <linux/perf_event.h>
#include <stdio.h>

#include "schema/recipe.h"

static struct vp_error *parse(const char *text, struct vp_recipe *recipe)
{
	return vp_recipe_parse("r", text, strlen(text), recipe);
}

static void assert_refused(const char *text, const char *sentence)
{
	struct vp_recipe recipe;
	struct vp_error *error = parse(text, &recipe);

	assert_non_null(error);
	assert_string_equal(vp_error_message(error), sentence);
	vp_error_free(error);
}

static void test_whole(void **state)
{
	struct vp_recipe recipe;

	expect_no_error(parse("# all there is\n"
			      "interval cycles:G 20k # narrow\n\n"
			      "per pcpu\nduration 30\r\nsub-intervals 4\n"
			      "count exits wakeups\n"
			      "set LLC-load-misses r1a2b:u\n"
			      "count instructions:k\n"
			      "set branches",
			      &recipe));
	assert_int_equal(recipe.unit, VP_UNIT_EVENT);
	assert_int_equal(recipe.trigger.config, PERF_COUNT_HW_CPU_CYCLES);
	assert_true(recipe.trigger.exclude_host && !recipe.trigger.exclude_guest);
	assert_int_equal(recipe.width, 20000);
	assert_int_equal(recipe.per, VP_PER_PCPU);
	assert_int_equal(recipe.duration, 30);
	assert_int_equal(recipe.n_sets, 2);
	assert_int_equal(recipe.sub_intervals, 4);
	assert_int_equal(recipe.n_counters, 4);
	assert_int_equal(recipe.events.count, 6);
	assert_int_equal(recipe.events.at[0].event.index, VP_COUNT_exits);
	assert_int_equal(recipe.events.at[2].event.type, PERF_TYPE_HW_CACHE);
	assert_int_equal(recipe.events.at[2].set, 1);
	assert_int_equal(recipe.events.at[3].event.type, PERF_TYPE_RAW);
	assert_int_equal(recipe.events.at[3].event.config, 0x1a2b);
	assert_true(recipe.events.at[3].event.exclude_kernel);
	assert_int_equal(recipe.events.at[4].set, 0);
	assert_int_equal(recipe.events.at[5].set, 2);
	assert_int_equal(recipe.events.at[5].event.index, 3);
	assert_int_equal(vp_recipe_find(&recipe, "r1a2b:u"), 3);
	assert_int_equal(vp_recipe_find(&recipe, "cycles"), VP_EVENTS_MAX);
	vp_recipe_deinit(&recipe);
}

/* What only the machine knows is kept by name, so that a recording is read elsewhere. */
static void test_names_of_machines(void **state)
{
	static const char text[] =
	    "interval cpu/cycles/u 1000\nper vcpu\n\n"
	    "count sched:sched_switch armv8_pmuv3_0/event=0x11,x/ sched:out\n";
	struct vp_buffer written = {0};
	struct vp_recipe recipe;

	expect_no_error(parse(text, &recipe));
	assert_true(recipe.trigger.of_machine && recipe.trigger.exclude_kernel);
	assert_true(recipe.events.at[0].event.of_machine && recipe.events.at[1].event.of_machine);
	assert_int_equal(recipe.events.at[1].position.line, 4);
	assert_int_equal(recipe.events.at[1].position.column, 26);
	assert_int_equal(recipe.events.at[2].event.source, VP_FROM_COUNT);
	vp_recipe_write(&recipe, &written);
	assert_string_equal(vp_buffer_text(&written), text);
	vp_buffer_deinit(&written);
	vp_recipe_deinit(&recipe);
}

static void test_defaults(void **state)
{
	struct vp_recipe recipe;

	expect_no_error(parse("set cycles\nset branches", &recipe));
	assert_string_equal(recipe.unit_name, "instructions");
	assert_int_equal(recipe.width, 60000000);
	assert_int_equal(recipe.per, VP_PER_VCPU);
	assert_int_equal(recipe.sub_intervals, 2);
	vp_recipe_deinit(&recipe);
}

static void test_units(void **state)
{
	struct vp_recipe recipe;

	expect_no_error(parse("interval time 1500us\ncount exits:io", &recipe));
	assert_int_equal(recipe.unit, VP_UNIT_TIME);
	assert_int_equal(recipe.width, 1500000);
	vp_recipe_deinit(&recipe);
	expect_no_error(parse("interval instructions 60K\ncount exits", &recipe));
	assert_int_equal(recipe.width, 60000);
	vp_recipe_deinit(&recipe);
	expect_no_error(parse("interval exits 1k\ncount time:exits:io", &recipe));
	assert_int_equal(recipe.unit, VP_UNIT_EXITS);
	assert_int_equal(recipe.width, 1000);
	assert_string_equal(recipe.events.at[0].event.unit, "ns");
	vp_recipe_deinit(&recipe);
	expect_no_error(parse("interval task-clock 2ms\nper task\ncount page-faults", &recipe));
	assert_int_equal(recipe.width, 2000000);
	vp_recipe_deinit(&recipe);
}

static void test_refused(void **state)
{
	assert_refused("", "r:0:1: the recipe counts nothing: expected a 'set' or 'count' "
			   "statement");
	assert_refused("interval", "r:1:9: expected a unit and a width, such as 'instructions 60M' "
				   "or 'time 10ms'");
	assert_refused("count exits\n\ninterval\tcycles 0",
		       "r:3:17: expected a width above 0 such as 60M, not '0'");
	assert_refused("interval time 10",
		       "r:1:15: expected a time above 0 such as 10ms, not '10'");
	assert_refused("interval time 9us",
		       "r:1:15: expected a time of at least 10000 ns, not 9000");
	assert_refused("interval cycles 5000000000G",
		       "r:1:17: expected a width above 0 such as 60M, not '5000000000G'");
	assert_refused("interval wakeups 5",
		       "r:1:10: unknown unit 'wakeups': expected time, exits or a perf event");
	assert_refused("interval exits 5\ninterval exits 6",
		       "r:2:1: duplicate statement 'interval'");
	assert_refused("per guest", "r:1:5: expected vcpu, task or pcpu, not 'guest'");
	assert_refused("per vcpu task", "r:1:10: unexpected word 'task'");
	assert_refused("count cycles cycels", "r:1:14: unknown event 'cycels' (did you mean "
					      "cycles?): 'vperf stat --list' prints the names");
	assert_refused("count cycels:u", "r:1:7: unknown event 'cycels:u' (did you mean cycles?): "
					 "'vperf stat --list' prints the names");
	assert_refused("count cycles:x", "r:1:7: unknown event 'cycles:x' (did you mean cycles?): "
					 "'vperf stat --list' prints the names");
	assert_refused("count misses",
		       "r:1:7: unknown event 'misses' (did you mean cache-misses, branch-misses or "
		       "LLC-load-misses?): 'vperf stat --list' prints the names");
	assert_refused("count cpu//", "r:1:7: unknown event 'cpu//': 'vperf stat --list' prints "
				      "the names");
	assert_refused("count cpu/a/b/", "r:1:7: unknown event 'cpu/a/b/': 'vperf stat --list' "
					 "prints the names");
	assert_refused("count exits\ncount exits", "r:2:7: 'exits' is counted already");
	assert_refused("set cycles exits",
		       "r:1:12: 'exits' is not a perf counter: use 'count' for it");
	assert_refused(
	    "interval exits 5\nsub-intervals 6\nset cycles\nset branches",
	    "r:4:1: the interval is too short for 6 sub-intervals: expected at least 1 each");
	assert_refused("interval time 30us\nsub-intervals 4\nset cycles\nset branches",
		       "r:4:1: the interval is too short for 4 sub-intervals: expected at least "
		       "10000 ns each");
	assert_refused("sub-intervals 1\nset cycles\nset branches",
		       "r:3:1: 2 sets do not fit into 1 sub-intervals: expected at most as many "
		       "sets");
	assert_refused("frobnicate", "r:1:1: unknown statement 'frobnicate': expected interval, "
				     "per, native, duration, sub-intervals, set or count");
	assert_refused("interval exits 5\nper task\ncount wakeups",
		       "r:1:10: a task has no VM exits: expected 'per vcpu' or 'per pcpu' with "
		       "'interval exits'");
	assert_refused(
	    "per pcpu\ncount guest:forks",
	    "r:2:7: 'guest:forks' is counted per guest CPU: use it with 'per vcpu' or 'native'");
	assert_refused(
	    "per task\ncount exits\tguest:forks",
	    "r:2:13: 'guest:forks' is counted per guest CPU: use it with 'per vcpu' or 'native'");
}

/* Raw codes are as many as one likes. */
static void append_events(struct vp_buffer *text, const char *statement, unsigned n)
{
	vp_buffer_string(text, statement);
	for (unsigned i = 0; i < n; i++)
		vp_buffer_printf(text, " r%x", i);
}

static void test_too_many(void **state)
{
	struct vp_buffer text = {0};
	struct vp_recipe recipe;

	append_events(&text, "count", VP_COUNTERS_MAX);
	expect_no_error(parse(vp_buffer_text(&text), &recipe));
	vp_recipe_deinit(&recipe);
	vp_buffer_string(&text, " cycles");
	expect_error(parse(vp_buffer_text(&text), &recipe), "expected at most 32 perf counters");
	vp_buffer_deinit(&text);
}

static void test_written_again(void **state)
{
	static const char text[] = "interval task-clock 5000000ns\nper vcpu\nduration 7\n"
				   "sub-intervals 3\ncount exits guest:forks\nset cycles branches\n"
				   "set r12:H\ncount wakeups\n";
	struct vp_buffer written = {0};
	struct vp_recipe recipe;

	expect_no_error(parse(text, &recipe));
	vp_recipe_write(&recipe, &written);
	assert_string_equal(vp_buffer_text(&written), text);
	vp_recipe_deinit(&recipe);
	vp_buffer_deinit(&written);
}

static void test_native(void **state)
{
	struct vp_recipe recipe;

	expect_no_error(parse("count cycles guest:page-faults guest:forks exits", &recipe));
	expect_no_error(vp_recipe_make_native("r", &recipe));
	assert_int_equal(recipe.per, VP_PER_TASK);
	assert_int_equal(recipe.n_counters, 3);
	assert_string_equal(recipe.events.at[1].name, "guest:page-faults");
	assert_int_equal(recipe.events.at[1].event.source, VP_FROM_COUNTER);
	assert_int_equal(recipe.events.at[1].event.config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_int_equal(recipe.events.at[1].event.index, 1);
	assert_string_equal(recipe.events.at[2].name, "guest:forks");
	assert_string_equal(recipe.events.at[2].event.machine_name, "sched:sched_process_fork");
	assert_true(recipe.events.at[2].event.of_machine);
	assert_int_equal(recipe.events.at[3].event.source, VP_FROM_COUNT);
	vp_recipe_deinit(&recipe);
	expect_no_error(parse("interval exits 5\ncount exits", &recipe));
	expect_error(
	    vp_recipe_make_native("r", &recipe),
	    "r:1:10: without a hypervisor there are no VM exits: expected another unit with "
	    "'native'");
	expect_error(vp_recipe_set_per("r", &recipe, "task"), "r:1:10: a task has no VM exits");
	vp_recipe_deinit(&recipe);
	expect_no_error(parse("count exits\ncount guest:forks", &recipe));
	expect_error(vp_recipe_set_per("r", &recipe, "pcpu"),
		     "r:2:7: 'guest:forks' is counted per guest CPU");
	vp_recipe_deinit(&recipe);
}

static void test_native_text(void **state)
{
	static const char text[] = "interval time 5000000ns\nper pcpu\nnative\n\n"
				   "count guest:page-faults guest:forks\n";
	struct vp_buffer written = {0};
	struct vp_recipe recipe;

	expect_no_error(parse(text, &recipe));
	assert_true(recipe.native && recipe.per == VP_PER_PCPU && recipe.n_counters == 2);
	vp_recipe_write(&recipe, &written);
	assert_string_equal(vp_buffer_text(&written), text);
	vp_buffer_deinit(&written);
	/* It is never made native twice. */
	expect_no_error(vp_recipe_set_per("r", &recipe, "task"));
	assert_true(recipe.per == VP_PER_TASK && recipe.n_counters == 2);
	expect_error(vp_recipe_set_per("r", &recipe, "guest"), "expected vcpu, task or pcpu");
	vp_recipe_deinit(&recipe);
	assert_refused("native\ninterval exits 5\ncount exits",
		       "r:2:10: without a hypervisor there are no VM exits: expected another unit "
		       "with 'native'");
}

static void find_again(void *context, const char *name, const struct vp_event *event,
		       const char *meaning)
{
	struct vp_event found;

	assert_true(vp_event_find((struct vp_slice){name, strlen(name)}, &found));
	assert_int_equal(found.source, event->source);
	assert_int_equal(found.index, event->index);
	assert_true(meaning[0] != 0);
	++*(unsigned *)context;
}

static void test_names(void **state)
{
	unsigned names = 0;

	vp_event_each(find_again, &names);
	assert_true(names > VP_COUNTS + VP_GUEST_COUNT);
}

/* Exits of a class that is left out would be missing from the sum of all classes. */
static void expect_all_classes(const struct vp_recipe *recipe, const char *path)
{
	for (uint32_t which = 0; which < VP_EXIT_CLASS_COUNT; which++) {
		size_t found = 0;
		for (size_t i = 0; i < recipe->events.count; i++) {
			const struct vp_event *event = &recipe->events.at[i].event;
			found += event->source == VP_FROM_COUNT &&
				 event->index == VP_COUNT_BY_CLASS + which;
		}
		if (found != 1)
			fail_msg("%s counts exits of class %u %zu times", path, which, found);
	}
}

static void test_shipped(void **state)
{
	static const char *const names[] = {"cpi", "exits", "software"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		VP_AUTO_FREE char *path = vp_format(RECIPES "/%s.recipe", names[i]);
		struct vp_recipe recipe;
		expect_no_error(vp_recipe_read(path, &recipe));
		expect_all_classes(&recipe, path);
		vp_recipe_deinit(&recipe);
	}
	struct vp_recipe recipe;
	expect_error(vp_recipe_read("no/such.recipe", &recipe), "no/such.recipe");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_whole),         cmocka_unit_test(test_names_of_machines),
	    cmocka_unit_test(test_defaults),      cmocka_unit_test(test_units),
	    cmocka_unit_test(test_refused),       cmocka_unit_test(test_too_many),
	    cmocka_unit_test(test_written_again), cmocka_unit_test(test_native),
	    cmocka_unit_test(test_names),         cmocka_unit_test(test_native_text),
	    cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
