/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions and times as users write them. */
#include "unit.h"

#include "base/alloc.h"
#include "collect/programs/condition_thief.h"
#include "schema/condition.h"

static void expect_condition(const char *text, enum vp_condition which, uint64_t ns,
			     const char *again)
{
	struct vp_conditions conditions = {0};

	expect_no_error(vp_conditions_add(&conditions, text, strlen(text)));
	for (int i = 0; i < VP_CONDITIONS; i++)
		assert_int_equal(conditions.wanted[i], i == (int)which);
	assert_int_equal(conditions.ns[which], ns);
	VP_AUTO_FREE char *written = vp_condition_text(&conditions, which);
	assert_string_equal(written, again);
}

static void test_conditions(void **state)
{
	expect_condition("steal>10ms", VP_CONDITION_STEAL, 10000000, "steal>10ms");
	expect_condition("wakeup>20000us", VP_CONDITION_WAKEUP, 20000000, "wakeup>20ms");
	expect_condition("exit>0.5ms", VP_CONDITION_EXIT, 500000, "exit>500us");
	expect_condition(" steal > 1.25 s ", VP_CONDITION_STEAL, 1250000000, "steal>1250ms");
	expect_condition("exit>7ns", VP_CONDITION_EXIT, 7, "exit>7ns");
	expect_condition("throttled", VP_CONDITION_THROTTLED, 0, "throttled");
	expect_condition("steal>3600s", VP_CONDITION_STEAL, 3600000000000, "steal>3600s");
	/* Written in a smaller unit than it was read in. */
	expect_condition("exit>962050569.5us", VP_CONDITION_EXIT, 962050569500,
			 "exit>962050569500ns");
	expect_condition("exit>962050569500ns", VP_CONDITION_EXIT, 962050569500,
			 "exit>962050569500ns");
	expect_condition("wakeup>3600000000000ns", VP_CONDITION_WAKEUP, 3600000000000,
			 "wakeup>3600s");
}

static void refuse(struct vp_conditions *conditions, const char *text, const char *message)
{
	struct vp_error *error = vp_conditions_add(conditions, text, strlen(text));

	assert_non_null(error);
	assert_int_equal(vp_error_kind(error), VP_ERROR_USAGE);
	assert_non_null(strstr(vp_error_message(error), message));
	vp_error_free(error);
}

static void test_refused(void **state)
{
	struct vp_conditions conditions = {0};
	static const char *const times[] = {"10",
					    "ms",
					    "-1ms",
					    "1 2ms",
					    "10m",
					    "",
					    "0ms",
					    "3601s",
					    "1..2ms",
					    "1e3ms",
					    "0x1ms",
					    "10msx",
					    "99999999999s",
					    "0.1ns",
					    ".ms",
					    "10 > 3ms",
					    "184467440737095516160ns"};

	refuse(&conditions, "steel>10ms", "not 'steel' (did you mean steal?)");
	refuse(&conditions, "", "not ''");
	refuse(&conditions, "steal", "steal needs a time: steal>10ms");
	refuse(&conditions, "steal=10ms", "not 'steal=10ms'");
	refuse(&conditions, "throttled>1ms", "throttled takes no time");
	for (size_t i = 0; i < VP_ARRAY_SIZE(times); i++) {
		VP_AUTO_FREE char *text = vp_format("exit>%s", times[i]);
		refuse(&conditions, text, "expected a time");
	}
	expect_no_error(vp_conditions_add(&conditions, "steal>1ms", 9));
	refuse(&conditions, "steal>2ms", "steal is given twice");
	expect_no_error(vp_conditions_add(&conditions, "exit>1ms", 8));
	assert_true(conditions.wanted[VP_CONDITION_STEAL] && conditions.wanted[VP_CONDITION_EXIT]);
	assert_int_equal(conditions.ns[VP_CONDITION_STEAL], 1000000);
}

static void test_times(void **state)
{
	uint64_t ns = 1;
	struct vp_error *error;

	expect_no_error(vp_duration_parse("snapshot-after", "0", 1, true, &ns));
	assert_int_equal(ns, 0);
	expect_no_error(vp_duration_parse("snapshot-after", "1.5s", 4, false, &ns));
	assert_int_equal(ns, 1500000000);
	expect_no_error(vp_duration_parse("snapshot-after", "0.0000000019s", 13, false, &ns));
	assert_int_equal(ns, 1);
	error = vp_duration_parse("snapshot-every", "0", 1, false, &ns);
	assert_non_null(strstr(vp_error_message(error), "option --snapshot-every"));
	vp_error_free(error);
}

/* The thread that had the pCPU longest, though it lost it in between. */
static void test_thief(void **state)
{
	struct vp_fired fired = {.time = 1000, .ns = 100, .tid = 5};
	struct vp_condition_cpu cpu = {.head = 4,
				       .slices = {{.begin = 850, .end = 940, .tid = 7},
						  {.begin = 940, .end = 941, .tid = 13},
						  {.begin = 941, .end = 960, .tid = 7},
						  {.begin = 960, .end = 999, .tid = 9},
						  {.begin = 999, .tid = 5}}};

	strcpy(cpu.slices[0].comm, "thief");
	vp_condition_find_thief(&cpu, &fired);
	assert_int_equal(fired.thief_tid, 7);
	assert_int_equal(fired.thief_ns, 59);
	assert_string_equal(fired.thief_comm, "thief");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_conditions),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_times),
	    cmocka_unit_test(test_thief),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
