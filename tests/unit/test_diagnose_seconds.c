/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Since when a finding holds, and how sure it is, from the seconds of an account. */
#include "unit.h"

#include <math.h>

#include "analyze/account/account_recording.h"
#include "analyze/account/account_seconds.h"
#include "analyze/account/account_tables.h"
#include "analyze/report/diagnose.h"
#include "base/buffer.h"
#include "base/json.h"
#include "make_recording.h"
#include "render/render_diagnose.h"
#include "schema/account_terms.h"
#include "schema/records.h"

#define NAME "diagnose_seconds"
#define SECOND 1000000000ULL
#define PERCENT (SECOND / 100)

enum { VM0 = 1000, VM1 = 2000, CPUID_EXIT = 0x72, PAUSE_EXIT = 0x77, SITE_IP = 0x1234 };

static const struct vp_stream_id account_stream = {VP_STREAM_ACCOUNT, VP_NO_PCPU};

/* Of each second: percent that a task takes of vm0, that another one takes of vm1, and that vm1's
 * exits cost. */
struct made_second {
	uint64_t task, other, exits;
};

static void put_times(struct made *made, uint32_t vm, uint64_t begin, uint64_t length,
		      uint64_t preempted, uint64_t kernel)
{
	struct vp_vcpu_account times = {.time = begin + length,
					.id = VP_ID_vcpu_account,
					.vm = vm,
					.begin = begin,
					.end = begin + length,
					.guest = length - preempted - kernel,
					.kernel = kernel,
					.preempted = preempted,
					.exits = kernel ? 1 : 0};

	vp_trace_append(made->writer, account_stream, &times);
}

static void put_thief(struct made *made, uint32_t vm, uint64_t time, uint64_t ns, uint32_t tid)
{
	struct vp_thief thief = {.time = time,
				 .id = VP_ID_thief,
				 .vm = vm,
				 .state = VP_STATE_PREEMPTED,
				 .kind = VP_BY_TASK,
				 .number = tid,
				 .thief_pid = tid,
				 .ns = ns,
				 .count = 1,
				 .comm = "burner"};

	if (ns)
		vp_trace_append(made->writer, account_stream, &thief);
}

static void put_exits(struct made *made, uint64_t time, uint64_t ns)
{
	struct vp_exit_account exits = {.time = time,
					.id = VP_ID_exit_account,
					.vm = VM1,
					.reason = CPUID_EXIT,
					.vendor = VP_VENDOR_AMD,
					.count = 1,
					.total = ns,
					.max = ns,
					.kernel = ns};

	if (ns)
		vp_trace_append(made->writer, account_stream, &exits);
}

/* The last write has a third of a second. */
static void make(const struct made_second *seconds, size_t count)
{
	struct made made;
	struct vp_exit_site site = {.id = VP_ID_exit_site,
				    .flags = VP_SITE_KNOWN,
				    .vm = VM1,
				    .reason = CPUID_EXIT,
				    .vendor = VP_VENDOR_AMD,
				    .ip = SITE_IP,
				    .count = 1,
				    .ns = SECOND};

	made_begin(&made, NAME, 2);
	for (size_t i = 0; i < count; i++) {
		uint64_t begin = MADE_START + i * SECOND;
		uint64_t part = i + 1 < count ? 1 : 3; /* a third of a second */
		uint64_t length = SECOND / part, end = begin + length;
		put_times(&made, VM0, begin, length, seconds[i].task * PERCENT / part, 0);
		put_times(&made, VM1, begin, length, seconds[i].other * PERCENT / part,
			  seconds[i].exits * PERCENT / part);
		put_thief(&made, VM0, end, seconds[i].task * PERCENT / part, 7);
		put_thief(&made, VM1, end, seconds[i].other * PERCENT / part, 8);
		put_exits(&made, end, seconds[i].exits * PERCENT / part);
		site.time = end;
	}
	vp_trace_append(made.writer, account_stream, &site);
	vp_trace_flush(made.writer, account_stream, 0);
	made_end(&made, count * SECOND / MADE_PERIOD);
}

struct diagnosed {
	struct vp_account_recording rec;
	struct vp_account_view view;
	struct vp_table exit_sites, addresses;
	struct vp_diagnosis diagnosis;
};

static void diagnose(struct diagnosed *ret, const struct vp_window *window)
{
	static const struct vp_naming nothing;

	*ret = (struct diagnosed){0};
	expect_no_error(vp_account_recording_open(NAME, window, &ret->rec));
	expect_no_error(vp_account_view_init(&ret->view, &ret->rec.account, NULL));
	vp_account_sites_table(&ret->view, &nothing, VP_EXITS_BY_FUNCTION, &ret->exit_sites);
	vp_account_addresses_table(&ret->view, &ret->addresses);
	vp_diagnose(&ret->view, &ret->exit_sites, &ret->addresses, &ret->rec.losses, NULL,
		    &ret->diagnosis);
	expect_no_error(vp_diagnose_seconds(NAME, &ret->view, &ret->exit_sites, &ret->diagnosis));
}

static void diagnosed_free(struct diagnosed *diagnosed)
{
	vp_diagnosis_deinit(&diagnosed->diagnosis);
	vp_table_deinit(&diagnosed->exit_sites);
	vp_table_deinit(&diagnosed->addresses);
	vp_account_view_deinit(&diagnosed->view);
	vp_account_recording_close(&diagnosed->rec);
}

static const struct vp_finding *finding_of(const struct diagnosed *diagnosed, uint32_t vm,
					   const char *id)
{
	vp_vec_each (&diagnosed->diagnosis.findings, finding)
		if (finding->vm == vm && !strcmp(finding->rule->id, id))
			return finding;
	fail_msg("there is no finding %s", id);
	return NULL;
}

static void expect_near(double value, double expected)
{
	if (fabs(value - expected) > 1e-3)
		fail_msg("%g is not %g", value, expected);
}

/* 20% of five seconds, 3 1/3 of the short one; a second of 3% is below the rule's least share. */
static const struct made_second varying[] = {{3, 0, 0},   {17, 0, 0},  {30, 50, 0},
					     {20, 0, 40}, {30, 0, 20}, {20, 0, 60}};

static void test_course(void **state)
{
	struct diagnosed diagnosed;

	make(varying, VP_ARRAY_SIZE(varying));
	diagnose(&diagnosed, NULL);
	const struct vp_finding *finding = finding_of(&diagnosed, 0, "steal-task");
	assert_int_equal(finding->since, MADE_START + SECOND);
	/* Four of five seconds and a third, of five and a third. */
	expect_near(finding->held_percent, 100 * (4 + 1.0 / 3) / (5 + 1.0 / 3));
	assert_int_equal(finding->seconds, 5);
	assert_true(finding->has_interval);
	expect_near(finding->percent, 20);
	/* Differences from the mean: -17, -3, 10, 0, 10; t of four degrees is 2.776. */
	double margin = 2.776 * sqrt((17 * 17 + 3 * 3 + 100 + 100) / 4.0 / 5);
	expect_near(finding->low, 20 - margin);
	expect_near(finding->high, 20 + margin);

	/* One second of six: the interval cannot be below 0. */
	finding = finding_of(&diagnosed, 1, "steal-task");
	assert_int_equal(finding->since, MADE_START + 2 * SECOND);
	expect_near(finding->held_percent, 100 / (5 + 1.0 / 3));
	assert_true(finding->low == 0 && finding->high > finding->percent);

	/* Exits of a reason, by second; what is where is known of the whole only. */
	finding = finding_of(&diagnosed, 1, "exits-cpuid");
	assert_int_equal(finding->since, MADE_START + 3 * SECOND);
	expect_near(finding->percent, 100 * (0.4 + 0.2 + 0.2) / (5 + 1.0 / 3));
	expect_near(finding->held_percent, 100 * (2 + 1.0 / 3) / (5 + 1.0 / 3));
	diagnosed_free(&diagnosed);
}

/* From the middle of the third second to that of the fifth. */
static void test_window(void **state)
{
	const struct vp_window window = {MADE_START + 5 * SECOND / 2, MADE_START + 9 * SECOND / 2};
	struct diagnosed diagnosed;

	make(varying, VP_ARRAY_SIZE(varying));
	diagnose(&diagnosed, &window);
	const struct vp_finding *finding = finding_of(&diagnosed, 0, "steal-task");
	/* Widened to whole seconds. */
	assert_int_equal(finding->since, MADE_START + 2 * SECOND);
	expect_near(finding->held_percent, 100);
	assert_int_equal(finding->seconds, 3);
	expect_near(finding->percent, (30 + 20 + 30) / 3.0);
	finding = finding_of(&diagnosed, 1, "exits-cpuid");
	assert_int_equal(finding->since, MADE_START + 3 * SECOND);
	expect_near(finding->held_percent, 200 / 3.0);
	diagnosed_free(&diagnosed);
}

static void expect_text(const struct diagnosed *diagnosed, const char *part, bool has)
{
	struct vp_buffer out = {0};

	vp_render_diagnosis_text(&diagnosed->diagnosis, &diagnosed->rec, &out);
	if ((strstr(vp_buffer_text(&out), part) != NULL) != has)
		fail_msg("'%s' in '%s'", part, vp_buffer_text(&out));
	vp_buffer_deinit(&out);
}

static void expect_json(const struct diagnosed *diagnosed, const char *part)
{
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);

	vp_json_object(&json, NULL);
	vp_render_diagnosis_json(&diagnosed->diagnosis, &diagnosed->rec, &json);
	vp_json_object_end(&json);
	if (!strstr(vp_buffer_text(&out), part))
		fail_msg("'%s' is not in '%s'", part, vp_buffer_text(&out));
	vp_buffer_deinit(&out);
}

static void test_text(void **state)
{
	static const struct made_second brief[] = {{50, 0, 0}, {50, 0, 0}, {50, 0, 0}};
	struct diagnosed diagnosed;

	make(varying, VP_ARRAY_SIZE(varying));
	diagnose(&diagnosed, NULL);
	diagnosed.rec.recording.realtime_offset = (int64_t)(1780000000 * SECOND);
	expect_text(&diagnosed, "+1.000 s, in 81% of the time\n", true);
	expect_text(&diagnosed, "2026-05-28 ", true); /* 1780000002 s */
	expect_text(&diagnosed, "95% interval 6.1% to 33.9%, from 5 seconds\n", true);
	expect_text(&diagnosed, "verify: record again, then vperf diff " NAME " AFTER\n", true);
	expect_json(&diagnosed, "\"seconds\": 5, \"since_ns\": 2000000000, "
				"\"held_percent\": 81.2");
	expect_json(&diagnosed, ", \"low_percent\": 6.1477");
	expect_json(&diagnosed, ", \"high_percent\": 33.852");
	expect_json(&diagnosed, "\"verify\": \"vperf diff " NAME " AFTER\"");
	diagnosed_free(&diagnosed);

	make(brief, VP_ARRAY_SIZE(brief));
	diagnose(&diagnosed, NULL);
	assert_false(finding_of(&diagnosed, 0, "steal-task")->has_interval);
	expect_text(&diagnosed, "95% interval", false);
	expect_text(&diagnosed, "too short for an interval (2 of at least 3 seconds)\n", true);
	expect_json(&diagnosed, "\"low_percent\": null, \"high_percent\": null");
	diagnosed_free(&diagnosed);
}

static void put_vcpu_thief(struct made *made, uint32_t vm, uint64_t time, uint32_t by)
{
	struct vp_thief thief = {.time = time,
				 .id = VP_ID_thief,
				 .vm = vm,
				 .state = VP_STATE_PREEMPTED,
				 .kind = VP_BY_VCPU,
				 .thief_pid = by,
				 .ns = 50 * PERCENT,
				 .count = 1};

	vp_trace_append(made->writer, account_stream, &thief);
}

/* Of each second, too: what no placement could have avoided. */
static void test_overcommit(void **state)
{
	struct diagnosed diagnosed;
	struct made made;

	made_begin(&made, NAME, 2);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t begin = MADE_START + i * SECOND;
		uint64_t taken = i ? 50 * PERCENT : 0;
		put_times(&made, VM0, begin, SECOND, taken, 0);
		put_times(&made, VM1, begin, SECOND, taken, 0);
		if (i) {
			put_vcpu_thief(&made, VM0, begin + SECOND, VM1);
			put_vcpu_thief(&made, VM1, begin + SECOND, VM0);
		}
	}
	vp_trace_flush(made.writer, account_stream, 0);
	made.about.pcpus = 1;
	made_end(&made, 4 * SECOND / MADE_PERIOD);
	diagnose(&diagnosed, NULL);
	const struct vp_finding *finding = finding_of(&diagnosed, 0, "overcommit");
	assert_int_equal(finding->since, MADE_START + SECOND);
	expect_near(finding->held_percent, 75);
	diagnosed_free(&diagnosed);
}

/* An interrupt that is a storm's in the whole recording is one's in each second; a VM that was
 * preempted in one second is one that was. */
static void test_of_the_whole(void **state)
{
	struct diagnosed diagnosed;
	struct made made;

	made_begin(&made, NAME, 1);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t begin = MADE_START + i * SECOND, end = begin + SECOND;
		struct vp_thief irq = {.time = end,
				       .id = VP_ID_thief,
				       .vm = VM0,
				       .state = VP_STATE_IRQ,
				       .kind = VP_BY_VECTOR,
				       .number = 236,
				       .ns = 10 * PERCENT,
				       .count = i ? 90000 : 10,
				       .comm = "timer"};
		struct vp_exit_account pause = {.time = end,
						.id = VP_ID_exit_account,
						.vm = VM0,
						.reason = PAUSE_EXIT,
						.vendor = VP_VENDOR_AMD,
						.count = 1,
						.total = 20 * PERCENT,
						.kernel = 20 * PERCENT};
		for (uint16_t vcpu = 0; vcpu < 2; vcpu++) {
			struct vp_vcpu_account times = {.time = end,
							.id = VP_ID_vcpu_account,
							.vm = VM0,
							.vcpu = vcpu,
							.begin = begin,
							.end = end,
							.guest = SECOND - 70 * PERCENT,
							.kernel = 20 * PERCENT,
							.irq = 10 * PERCENT,
							.preempted = i ? 0 : 40 * PERCENT,
							.halted = i ? 40 * PERCENT : 0};
			vp_trace_append(made.writer, account_stream, &times);
		}
		vp_trace_append(made.writer, account_stream, &irq);
		vp_trace_append(made.writer, account_stream, &pause);
	}
	struct vp_exit_site site = {.time = MADE_START + 4 * SECOND,
				    .id = VP_ID_exit_site,
				    .flags = VP_SITE_KNOWN,
				    .vm = VM0,
				    .reason = PAUSE_EXIT,
				    .vendor = VP_VENDOR_AMD,
				    .ip = SITE_IP,
				    .count = 1,
				    .ns = SECOND};
	vp_trace_append(made.writer, account_stream, &site);
	vp_trace_flush(made.writer, account_stream, 0);
	made_end(&made, 4 * SECOND / MADE_PERIOD);
	diagnose(&diagnosed, NULL);
	const struct vp_finding *finding = finding_of(&diagnosed, 0, "irq-storm");
	assert_int_equal(finding->since, MADE_START);
	expect_near(finding->held_percent, 100);
	finding = finding_of(&diagnosed, 0, "exits-lock");
	assert_int_equal(finding->since, MADE_START);
	expect_near(finding->held_percent, 100);
	diagnosed_free(&diagnosed);
}

static void test_unreadable(void **state)
{
	struct diagnosed diagnosed;

	make(varying, VP_ARRAY_SIZE(varying));
	diagnose(&diagnosed, NULL);
	expect_error(vp_diagnose_seconds("nowhere", &diagnosed.view, &diagnosed.exit_sites,
					 &diagnosed.diagnosis),
		     "nowhere");
	diagnosed_free(&diagnosed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_course),       cmocka_unit_test(test_window),
	    cmocka_unit_test(test_text),         cmocka_unit_test(test_overcommit),
	    cmocka_unit_test(test_of_the_whole), cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
