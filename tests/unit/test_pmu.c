/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events by a machine's own names, in a made-up sysfs. */
#include "unit.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/stat.h>

#include "host/pmu.h"

#define SYSFS "pmu-sysfs"

static void make_file(const char *path, const char *text)
{
	VP_AUTO_FREE char *whole = vp_format(SYSFS "/%s", path);

	for (char *slash = whole; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		mkdir(whole, 0755);
		*slash = '/';
	}
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

#define DEVICES "bus/event_source/devices/"

static int make_sysfs(void **state)
{
	make_file(DEVICES "cpu/type", "4\n");
	make_file(DEVICES "cpu/format/event", "config:0-7,32-35\n");
	make_file(DEVICES "cpu/format/umask", "config:8-15\n");
	make_file(DEVICES "cpu/format/edge", "config:18\n");
	make_file(DEVICES "cpu/format/offcore", "config1:0-63\n");
	make_file(DEVICES "cpu/format/odd", "config7:0-3\n");
	make_file(DEVICES "cpu/events/cache-misses", "event=0x2e,umask=0x41\n");
	make_file(DEVICES "cpu/events/instructions", "event=0xc0\n");
	make_file(DEVICES "cpu/events/instructions.scale", "2\n");
	make_file(DEVICES "cpu/events/loop", "loop\n");
	make_file(DEVICES "msr/type", "9\n");
	make_file(DEVICES "msr/events/tsc", "event=0x00\n");
	make_file(DEVICES "msr/format/event", "config:0-63\n");
	make_file(DEVICES "power/type", "12\n");
	make_file(DEVICES "power/cpumask", "0\n");
	make_file(DEVICES "power/events/energy", "event=0x02\n");
	make_file("kernel/tracing/events/sched/sched_switch/id", "316\n");
	make_file("kernel/tracing/events/sched/sched_wakeup/id", "318\n");
	make_file("kernel/tracing/events/raw_syscalls/sys_enter/id", "348\n");
	return 0;
}

static struct vp_event resolve(const char *name)
{
	struct vp_event event;

	assert_true(vp_event_find((struct vp_slice){name, strlen(name)}, &event));
	expect_no_error(vp_pmu_resolve(SYSFS, name, &event));
	assert_false(event.of_machine);
	return event;
}

static void assert_counter(const char *name, uint32_t type, uint64_t config)
{
	struct vp_event event = resolve(name);

	assert_int_equal(event.source, VP_FROM_COUNTER);
	assert_int_equal(event.type, type);
	assert_int_equal(event.config, config);
}

static void test_found(void **state)
{
	assert_counter("cpu/cache-misses/", 4, 0x412e);
	assert_counter("cpu/event=0x3c/", 4, 0x3c);
	assert_counter("cpu/event=0xf3c,umask=16,edge/", 4, 0xf0004103cULL);
	assert_counter("cpu/event=0xa3c/", 4, 0xa0000003cULL);
	assert_counter("cpu/instructions,edge/k", 4, 0x400c0);
	assert_counter("cpu/config=0x1234,umask=0xff/", 4, 0xff34);
	assert_counter("msr/tsc/", 9, 0);
	assert_counter("msr/config=3/", 9, 3);
	assert_counter("sched:sched_switch", PERF_TYPE_TRACEPOINT, 316);
	assert_counter("cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	assert_true(resolve("cpu/instructions/u").exclude_kernel);
	assert_int_equal(resolve("cpu/event=1,offcore=0x123456789abc/").config1, 0x123456789abc);
	assert_int_equal(resolve("cpu/config2=7/").config2, 7);
}

static void assert_refused(const char *recipe_text, const char *sentence)
{
	struct vp_recipe recipe;

	expect_no_error(vp_recipe_parse("r", recipe_text, strlen(recipe_text), &recipe));
	struct vp_error *error = vp_pmu_resolve_recipe(SYSFS, "r", &recipe);
	assert_non_null(error);
	assert_string_equal(vp_error_message(error), sentence);
	vp_error_free(error);
	vp_recipe_deinit(&recipe);
}

/* What stands for a guest kernel's event is missing where the machine has none, as that may be. */
static void test_native(void **state)
{
	const char text[] = "count guest:context-switches guest:system-calls";
	struct vp_recipe recipe;

	expect_no_error(vp_recipe_parse("r", text, sizeof(text) - 1, &recipe));
	expect_no_error(vp_recipe_make_native("r", &recipe));
	expect_no_error(vp_pmu_resolve_recipe(SYSFS "/bus", "r", &recipe));
	assert_int_equal(recipe.events.at[0].event.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(recipe.events.at[1].event.type, UINT32_MAX);
	recipe.events.at[1].event.of_machine = true;
	expect_no_error(vp_pmu_resolve_recipe(SYSFS, "r", &recipe));
	assert_int_equal(recipe.events.at[1].event.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(recipe.events.at[1].event.config, 348);
	assert_string_equal(recipe.events.at[1].name, "guest:system-calls");
	vp_recipe_deinit(&recipe);
}

static void test_refused(void **state)
{
	assert_refused("count exits\ncount cycles cpu/cach-miss/",
		       "r:2:14: unknown event 'cpu/cach-miss/': PMU 'cpu' has no event or format "
		       "term 'cach-miss' (did you mean cache-misses?)");
	assert_refused("interval cpux/instructions/ 1M\ncount exits",
		       "r:1:10: unknown event 'cpux/instructions/': this host has no PMU "
		       "'cpux' (did you mean cpu?)");
	assert_refused("count cpu/umask=0x100/",
		       "r:1:7: unknown event 'cpu/umask=0x100/': 0x100 does not fit into term "
		       "'umask', config:8-15");
	assert_refused("count cpu/event=two/",
		       "r:1:7: unknown event 'cpu/event=two/': expected a number for term 'event', "
		       "not 'two'");
	assert_refused(
	    "count cpu/odd/",
	    "r:1:7: unknown event 'cpu/odd/': PMU 'cpu': term 'odd' has an unsupported format");
	assert_refused("count cpu/loop/", "r:1:7: unknown event 'cpu/loop/': PMU 'cpu' has no "
					  "event or format term 'loop' (did you mean loop?)");
	assert_refused("count cpu/instructions=2/",
		       "r:1:7: unknown event 'cpu/instructions=2/': PMU 'cpu' has no event or "
		       "format term 'instructions' (did you mean instructions?)");
	assert_refused("count power/energy/",
		       "r:1:7: event 'power/energy/': PMU 'power' is an uncore PMU (it has a "
		       "cpumask): uncore PMUs are not supported");
	assert_refused("count sched:sched_swich",
		       "r:1:7: unknown event 'sched:sched_swich': no such tracepoint (did you mean "
		       "sched:sched_switch or sched:sched_wakeup?)");
	assert_refused("count exits:msrs", "r:1:7: unknown event 'exits:msrs': no such tracepoint "
					   "(did you mean exits:msr, exits:mmio or exits:io?)");
	assert_refused("interval sched:sched_switch 10\ncount exits",
		       "r:1:10: 'sched:sched_switch' is a tracepoint: tracepoints can be counted "
		       "but cannot be the interval trigger; expected time, exits or a counter");
}

static void test_without_tracefs(void **state)
{
	struct vp_event event;

	assert_true(vp_event_find((struct vp_slice){"a:sched", 7}, &event));
	expect_error(vp_pmu_resolve(SYSFS "/bus", "a:sched", &event),
		     "unknown event 'a:sched': tracepoints cannot be read in '" SYSFS
		     "/bus/kernel/tracing/events'");
}

static void take(void *context, const char *name)
{
	vp_buffer_printf(context, "%s ", name);
}

static void test_listed(void **state)
{
	struct vp_buffer names = {0};

	vp_pmu_each(SYSFS, take, &names);
	assert_string_equal(vp_buffer_text(&names),
			    "cpu/cache-misses/ cpu/instructions/ cpu/loop/ msr/tsc/ ");
	vp_buffer_deinit(&names);
	vp_pmu_each("no/sysfs", take, &names);
	assert_int_equal(names.size, 0);
	vp_buffer_deinit(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_found),   cmocka_unit_test(test_native),
	    cmocka_unit_test(test_refused), cmocka_unit_test(test_without_tracefs),
	    cmocka_unit_test(test_listed),
	};

	return cmocka_run_group_tests(tests, make_sysfs, NULL);
}
