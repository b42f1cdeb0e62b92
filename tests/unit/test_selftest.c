/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts of `vperf selftest`: bounds, the table, reports' JSON, and that each check can fail. */
#include "unit.h"

#include <json-c/json.h>
#include <math.h>

#include "selftest/facts.h"

static const struct vp_check *last(const struct vp_checks *checks)
{
	assert_true(checks->all.count > 0);
	return &checks->all.at[checks->all.count - 1];
}

static void expect_verdict(const struct vp_checks *checks, enum vp_verdict verdict)
{
	assert_int_equal(last(checks)->verdict, verdict);
}

static void test_bounds(void **state)
{
	struct vp_checks checks = {0};

	vp_check_near(&checks, "near", "", 100, 103, 3);
	expect_verdict(&checks, VP_VERDICT_OK);
	vp_check_near(&checks, "near", "", 100, 97, 3);
	expect_verdict(&checks, VP_VERDICT_OK);
	vp_check_near(&checks, "near", "", 100, 103.01, 3);
	expect_verdict(&checks, VP_VERDICT_FAILED);
	vp_check_near(&checks, "near", "", 100, 96.99, 3);
	expect_verdict(&checks, VP_VERDICT_FAILED);
	vp_check_near(&checks, "near", "", 100, NAN, 3);
	expect_verdict(&checks, VP_VERDICT_FAILED);
	vp_check_most(&checks, "most", "", 0, -50, 5);
	expect_verdict(&checks, VP_VERDICT_OK);
	vp_check_most(&checks, "most", "", 0, 5.01, 5);
	expect_verdict(&checks, VP_VERDICT_FAILED);
	vp_check_most(&checks, "most", "", 0, NAN, 5);
	expect_verdict(&checks, VP_VERDICT_FAILED);
	vp_check_same(&checks, "same", "cycles", "cycles");
	expect_verdict(&checks, VP_VERDICT_OK);
	vp_check_same(&checks, "same", "cycles", "cpu-clock");
	expect_verdict(&checks, VP_VERDICT_FAILED);
	vp_check_same(&checks, "same", "cycles", NULL);
	expect_verdict(&checks, VP_VERDICT_FAILED);
	assert_int_equal(vp_checks_count(&checks, VP_VERDICT_OK), 4);
	assert_int_equal(vp_checks_status(&checks), 1);
	vp_checks_deinit(&checks);
}

static void test_status(void **state)
{
	struct vp_checks checks = {0};

	assert_int_equal(vp_checks_status(&checks), 0);
	vp_check_near(&checks, "a", "", 1, 1, 0);
	vp_check_not_possible(&checks, "b", "no PMU");
	assert_int_equal(vp_checks_status(&checks), 0);
	vp_check_near(&checks, "c", "", 1, 2, 0);
	assert_int_equal(vp_checks_status(&checks), 1);
	vp_checks_deinit(&checks);
}

/* Four standard errors of 1600 samples at 80:20 are 4 points. */
static void test_share_bound(void **state)
{
	assert_true(fabs(vp_share_bound(80, 1600, 0) - (4 + 100.0 / 1600)) < 1e-9);
	assert_true(fabs(vp_share_bound(80, 1600, 0.01) - (5 + 100.0 / 1600)) < 1e-9);
	assert_true(vp_share_bound(80, 0, 0) > 100);
}

static void test_text(void **state)
{
	struct vp_checks checks = {0};
	struct vp_buffer out = {0};

	vp_check_near(&checks, "share", "%", 80, 79.54, 3);
	vp_check_near(&checks, "exits", "", 2000, 1999, 0);
	vp_check_same(&checks, "trigger", "cycles", "cycles");
	vp_check_not_possible(&checks, "counter", "the guest has no PMU");
	vp_checks_put_text(&checks, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "Check    Expected  Measured  Bound  Verdict\n"
			    "share         80%    79.54%   +-3%  ok\n"
			    "exits        2000      1999    +-0  failed\n"
			    "trigger    cycles    cycles      -  ok\n"
			    "counter         -         -      -  not possible\n"
			    "  the guest has no PMU\n"
			    "\n2 of 4 checks are ok, 1 failed, 1 is not possible on this host. "
			    "Do not trust reports of this host where a check failed.\n");
	vp_buffer_deinit(&out);
	vp_checks_deinit(&checks);
}

static void test_json(void **state)
{
	struct vp_checks checks = {0};
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);

	vp_check_near(&checks, "share", "%", 80, 79.5, 3);
	vp_check_not_possible(&checks, "counter", "no PMU");
	vp_json_object(&json, NULL);
	vp_checks_put_json(&checks, &json);
	vp_json_object_end(&json);
	struct json_object *all = json_tokener_parse(vp_buffer_text(&out)), *list, *member;
	assert_true(json_object_object_get_ex(all, "checks", &list));
	assert_int_equal(json_object_array_length(list), 2);
	struct json_object *first = json_object_array_get_idx(list, 0);
	assert_true(json_object_object_get_ex(first, "measured", &member));
	assert_true(json_object_get_double(member) == 79.5);
	assert_true(json_object_object_get_ex(first, "verdict", &member));
	assert_string_equal(json_object_get_string(member), "ok");
	struct json_object *second = json_object_array_get_idx(list, 1);
	assert_true(json_object_object_get_ex(second, "measured", &member));
	assert_null(member);
	assert_true(json_object_object_get_ex(second, "why", &member));
	assert_string_equal(json_object_get_string(member), "no PMU");
	json_object_put(all);
	vp_buffer_deinit(&out);
	vp_checks_deinit(&checks);
}

static struct json_object *parsed(const char *text)
{
	struct json_object *json = json_tokener_parse(text);

	assert_non_null(json);
	return json;
}

#define TAKE(function, recording, text, ...)                                                       \
	do {                                                                                       \
		struct json_object *taken = parsed(text);                                          \
		function(recording, ##__VA_ARGS__, taken);                                         \
		json_object_put(taken);                                                            \
	} while (0)

static void test_reports(void **state)
{
	struct vp_selftest_recording rec = {0};
	struct vp_selftest_facts facts = {0};

	TAKE(vp_facts_take_check, &facts,
	     "{\"version\":1,\"features\":[{\"name\":\"sampling "
	     "programs\",\"found\":true,\"detail\":\"\"},"
	     "{\"name\":\"hardware counter\",\"found\":false,\"detail\":\"none here\"}]}");
	assert_null(facts.no_samples);
	assert_string_equal(facts.no_counter, "none here");
	TAKE(vp_facts_take_info, &rec,
	     "{\"trigger\":\"cpu-clock\",\"period_ns\":1000,\"unit\":\"samples\",\"lost\":2,"
	     "\"account_lost\":3}");
	assert_string_equal(rec.trigger, "cpu-clock");
	assert_true(rec.lost == 5 && !rec.by_time);
#define SAMPLE(vm, time, function)                                                                 \
	"{\"type\":\"sample\",\"vm\":\"" vm "\",\"time_ns\":" time                                 \
	",\"weight\":1,\"frames\":[{\"function\":\"" function "\"}]}"
	TAKE(vp_facts_take_sample, &rec, SAMPLE("vm-1", "70", VP_GUEST_HOT), "vm-1");
	TAKE(vp_facts_take_sample, &rec, SAMPLE("vm-1", "50", VP_GUEST_COLD), "vm-1");
	TAKE(vp_facts_take_sample, &rec, SAMPLE("vm-1", "90", "selftest_halt"), "vm-1");
	TAKE(vp_facts_take_sample, &rec, SAMPLE("vm-1", "95", "0x10"), "vm-1");
	TAKE(vp_facts_take_sample, &rec, SAMPLE("vm-2", "99", VP_GUEST_HOT), "vm-1");
	TAKE(vp_facts_take_sample, &rec, "{\"type\":\"slice\",\"vm\":\"vm-1\"}", "vm-1");
	assert_true(rec.samples == 4 && rec.sampled_ns == 4000 && rec.named_ns == 3000);
	assert_true(rec.hot_ns == 1000 && rec.cold_ns == 1000);
	assert_true(rec.first == 50 && rec.last == 70);
	TAKE(vp_facts_take_account, &rec,
	     "{\"states\":[{\"vm\":\"vm-1\",\"state\":\"guest\",\"ns\":60},"
	     "{\"vm\":\"vm-1\",\"state\":\"halted\",\"ns\":40},"
	     "{\"vm\":\"other\",\"state\":\"halted\",\"ns\":7}],"
	     "\"vcpus\":[{\"vm\":\"vm-1\",\"wall_ns\":100}]}",
	     "vm-1");
	assert_true(rec.guest == 60 && rec.halted == 40 && rec.states == 100 && rec.wall == 100);
	TAKE(vp_facts_take_steal, &rec,
	     "{\"thieves\":[{\"vm\":\"vm-1\",\"thief\":\"vperf-thief/9\",\"ns\":5},"
	     "{\"vm\":\"vm-1\",\"thief\":\"bash/3\",\"ns\":50}]}",
	     "vm-1", "vperf-thief/9");
	assert_true(rec.stolen_by_thief == 5);
	free(rec.trigger);
	vp_facts_deinit(&facts);
}

/* By a function's name, or by an address in it. */
static void test_exits(void **state)
{
	struct vp_selftest_recording rec = {0};
	struct vp_guest_symbol symbol = {0};
	const struct vp_guest_exit_kind *kind = vp_guest_exit_kind(VP_GUEST_HALT);
	char text[1024];

	for (size_t i = 0; vp_guest_symbol(i, &symbol) && strcmp(symbol.name, kind->function); i++)
		;
	assert_string_equal(symbol.name, kind->function);
	assert_string_equal(vp_guest_function(symbol.address + 3), kind->function);
	assert_null(vp_guest_function(1));
	snprintf(text, sizeof(text),
		 "{\"exits\":[{\"vm\":\"v\",\"reason\":\"%s\",\"function\":\"%#llx\",\"count\":3},"
		 "{\"vm\":\"v\",\"reason\":\"%s\",\"function\":\"elsewhere\",\"count\":4},"
		 "{\"vm\":\"v\",\"reason\":\"%s\",\"function\":\"%s\",\"count\":1},"
		 "{\"vm\":\"v\",\"reason\":\"INTR\",\"function\":null,\"count\":9},"
		 "{\"vm\":\"w\",\"reason\":\"INTR\",\"function\":null,\"count\":100}]}",
		 kind->reasons[0], (unsigned long long)symbol.address + 3, kind->reasons[0],
		 kind->reasons[0], kind->function);
	TAKE(vp_facts_take_exits, &rec, text, "v");
	assert_true(rec.by_function[VP_GUEST_HALT] == 4 && rec.by_reason[VP_GUEST_HALT] == 8);
	assert_true(rec.exits == 17);
}

enum { MS = 1000000 };

/* All is as it should be: 3 s of work, 1 s of halts; then 2 s shared with a thief. */
static struct vp_selftest_facts good_facts(void)
{
	struct vp_guest_done alone = {.begin = {.at = 1000 * MS},
				      .busy = {.at = 2000 * MS, .run = 1000 * MS},
				      .loops = 250000000,
				      .instructions = 6000000,
				      .counted = 6000100,
				      .has_counter = true};
	struct vp_selftest_facts facts = {
	    .before = alone,
	    .after = alone,
	    .quiet = {.begin = {.at = 5000ULL * MS, .run = 1000ULL * MS},
		      .busy = {.at = 8000ULL * MS, .run = 4000ULL * MS},
		      .end = {.at = 9000ULL * MS, .run = 4100ULL * MS},
		      .loops = 747500000,
		      .has_stats = true,
		      .stat_exits = 9000},
	    .quiet_recording = {.trigger = strdup("cycles"),
				.period_ns = MS,
				.samples = 3000,
				.sampled_ns = 3000.0 * MS,
				.named_ns = 3000.0 * MS,
				.hot_ns = 2400.0 * MS,
				.cold_ns = 600.0 * MS,
				.ticks = 4000,
				.first = 5001ULL * MS,
				.last = 7999ULL * MS,
				.wall = 4000.0 * MS,
				.states = 4000.0 * MS,
				.guest = 3000.0 * MS,
				.kernel = 100.0 * MS,
				.halted = 900.0 * MS,
				.exits = 8999},
	    .shared = {.end = {.at = 2000ULL * MS, .delay = 1000ULL * MS}},
	    .shared_recording = {.trigger = strdup("cycles"),
				 .preempted = 1000.0 * MS,
				 .stolen_by_thief = 1000.0 * MS},
	    .thief_end = {.run = 1000ULL * MS},
	};

	for (int i = 0; i < VP_GUEST_EXITS; i++) {
		const struct vp_guest_exit_kind *kind = vp_guest_exit_kind((enum vp_guest_exit)i);
		facts.work.exits[i] = 100;
		facts.quiet_recording.by_function[i] = 100;
		facts.quiet_recording.by_reason[i] = 100 + kind->others;
	}
	return facts;
}

static void expect_all_ok(void **state)
{
	struct vp_selftest_facts facts = good_facts();
	struct vp_checks checks = {0};

	vp_facts_judge(&facts, &checks);
	vp_vec_each (&checks.all, check)
		if (check->verdict == VP_VERDICT_FAILED)
			fail_msg("'%s' has failed: %g, expected %g +- %g", check->name,
				 check->measured, check->expected, check->bound);
	assert_true(checks.all.count >= 15);
	vp_checks_deinit(&checks);
	vp_facts_deinit(&facts);
}

/* With these facts exactly the named check has failed. */
static void expect_failed(struct vp_selftest_facts *facts, const char *name)
{
	struct vp_checks checks = {0};
	bool found = false;

	vp_facts_judge(facts, &checks);
	vp_vec_each (&checks.all, check) {
		bool failed = check->verdict == VP_VERDICT_FAILED;
		if (failed != !strcmp(check->name, name))
			fail_msg("with '%s' wrong, '%s' is %s", name, check->name,
				 vp_verdict_name(check->verdict));
		found |= failed;
	}
	assert_true(found);
	vp_checks_deinit(&checks);
	vp_facts_deinit(facts);
}

#define WRONG(member, value, name)                                                                 \
	do {                                                                                       \
		struct vp_selftest_facts wrong = good_facts();                                     \
		wrong.member = (value);                                                            \
		expect_failed(&wrong, name);                                                       \
	} while (0)

static void test_each_can_fail(void **state)
{
	struct vp_selftest_facts facts = good_facts();

	facts.quiet_recording.trigger[0] = 'b';
	expect_failed(&facts, "samples: by a hardware counter");
	WRONG(quiet_recording.kernel, 300.0 * MS, "account: time on the pCPU");
	WRONG(quiet_recording.states, 3990.0 * MS, "account: sum of all states");
	WRONG(quiet_recording.halted, 870.0 * MS, "account: time halted");
	WRONG(quiet_recording.exits, 8000, "exits: all, by KVM's statistics");
	WRONG(quiet_recording.lost, 1, "lost records");
	WRONG(shared_recording.lost, 1, "lost records");
	WRONG(shared_recording.preempted, 900.0 * MS, "steal: time stolen");
	WRONG(shared_recording.stolen_by_thief, 900.0 * MS, "steal: taken by the known thief");
	WRONG(before.counted, 6010000, "counter: instructions in the guest");
	WRONG(quiet.loops, 675000000, "cost: a busy guest's time");
	facts = good_facts();
	facts.quiet_recording.sampled_ns = facts.quiet_recording.named_ns = 2800.0 * MS;
	expect_failed(&facts, "samples: time in the guest");
	for (int i = 0; i < VP_GUEST_EXITS; i++) {
		const struct vp_guest_exit_kind *kind = vp_guest_exit_kind((enum vp_guest_exit)i);
		facts = good_facts();
		facts.quiet_recording.by_function[i]--;
		facts.quiet_recording.by_reason[i]++;
		if (kind->check)
			expect_failed(&facts, kind->check);
		else
			vp_facts_deinit(&facts);
	}
	if (!vp_guest_has_rip())
		return;
	facts = good_facts();
	facts.quiet_recording.hot_ns = 2200.0 * MS;
	facts.quiet_recording.cold_ns = 800.0 * MS;
	expect_failed(&facts, "samples: share of " VP_GUEST_HOT);
	WRONG(quiet_recording.named_ns, 2999.0 * MS, "samples: with a function's name");
	WRONG(quiet_recording.first, 5200ULL * MS, "clock: time from first to last sample");
	WRONG(quiet_recording.last, 8001ULL * MS, "clock: samples within the work's time");
	WRONG(quiet_recording.first, 4999ULL * MS, "clock: samples within the work's time");
}

/* Samples stand for the handlers that took them, too. */
static struct vp_selftest_facts facts_with_handlers(double sampled)
{
	struct vp_selftest_facts facts = good_facts();

	facts.quiet_recording.guest = 2850.0 * MS;
	facts.quiet_recording.interrupted = 150.0 * MS;
	facts.quiet_recording.sampled_ns = facts.quiet_recording.named_ns = sampled;
	return facts;
}

static void test_time_of_handlers(void **state)
{
	struct vp_selftest_facts less = facts_with_handlers(2600.0 * MS);
	struct vp_selftest_facts more = facts_with_handlers(3250.0 * MS);
	struct vp_selftest_facts facts = facts_with_handlers(3000.0 * MS);
	struct vp_checks checks = {0};

	(void)state;
	expect_failed(&less, "samples: time in the guest");
	expect_failed(&more, "samples: time in the guest");
	vp_facts_judge(&facts, &checks);
	assert_int_equal(vp_checks_count(&checks, VP_VERDICT_FAILED), 0);
	vp_checks_deinit(&checks);
	vp_facts_deinit(&facts);
}

/* 50 million instructions per second, as the lab's Intel host has: a sample of 5300 instructions is
 * allowed, one of 6300 is not. */
static void test_slow_processor(void **state)
{
	const uint64_t loops = 50000000 / 6;

	(void)state;
	for (int more = 0; more < 2; more++) {
		struct vp_selftest_facts facts = good_facts();
		struct vp_checks checks = {0};
		double cost = (more ? 6300.0 : 5300.0) * 1000 / 50e6;
		facts.before.loops = facts.after.loops = loops;
		facts.quiet.loops = (uint64_t)(3 * (double)loops / (1 + cost));
		if (more) {
			expect_failed(&facts, "cost: a busy guest's time");
			continue;
		}
		vp_facts_judge(&facts, &checks);
		assert_int_equal(vp_checks_count(&checks, VP_VERDICT_FAILED), 0);
		vp_checks_deinit(&checks);
		vp_facts_deinit(&facts);
	}
}

/* Exits without a place are counted by reason, where the program has no others of that kind. */
static void test_not_possible(void **state)
{
	struct vp_selftest_facts facts = good_facts();
	struct vp_checks checks = {0};

	facts.no_rips = strdup("no RIP");
	facts.no_counter = strdup("no PMU");
	facts.before.has_counter = false;
	facts.after.loops /= 2;
	vp_facts_judge(&facts, &checks);
	assert_int_equal(vp_checks_status(&checks), 0);
	vp_vec_each (&checks.all, check) {
		if (!strcmp(check->name, "exits: halts"))
			assert_int_equal(check->verdict, VP_VERDICT_OK);
		if (!strcmp(check->name, "samples: by a hardware counter")) {
			assert_int_equal(check->verdict, VP_VERDICT_NOT_POSSIBLE);
			assert_string_equal(check->why, "no PMU; samples come from cycles");
		}
		if (!strcmp(check->name, "counter: instructions in the guest") ||
		    !strcmp(check->name, "cost: a busy guest's time"))
			assert_int_equal(check->verdict, VP_VERDICT_NOT_POSSIBLE);
	}
	vp_checks_deinit(&checks);
	vp_facts_deinit(&facts);
}

static void test_without_programs(void **state)
{
	struct vp_selftest_facts facts = good_facts();
	struct vp_checks checks = {0};

	facts.no_samples = strdup("samplers do not load");
	facts.no_account = strdup("account programs do not load");
	facts.quiet_recording.lost = 1;
	facts.quiet.loops = 0;
	vp_facts_judge(&facts, &checks);
	size_t samples = 0, account = 0, recordings = 0;
	vp_vec_each (&checks.all, check) {
		samples += !strcmp(check->why, "samplers do not load");
		account += !strcmp(check->why, "account programs do not load");
		recordings += !strcmp(check->why, "nothing can be recorded on this host");
	}
	assert_int_equal(samples, 2);
	assert_int_equal(account, 3);
	assert_int_equal(recordings, 2);
	assert_int_equal(vp_checks_status(&checks), 0);
	vp_checks_deinit(&checks);
	vp_facts_deinit(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_status),
	    cmocka_unit_test(test_share_bound),
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_reports),
	    cmocka_unit_test(test_exits),
	    cmocka_unit_test(expect_all_ok),
	    cmocka_unit_test(test_each_can_fail),
	    cmocka_unit_test(test_time_of_handlers),
	    cmocka_unit_test(test_slow_processor),
	    cmocka_unit_test(test_not_possible),
	    cmocka_unit_test(test_without_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
