/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several recordings as one report: VMs that are the same, sums, what is left out, and what cannot
 * be added. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyze/common/recording_parts.h"
#include "analyze/report/report_joined.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/vec.h"
#include "make_recording.h"

#define FIRST "report_joined.1"
#define SECOND "report_joined.2"

static void set(char **to, const char *text)
{
	free(*to);
	*to = vp_strdup(text);
}

/* A recording in which the processes 1000 and 2000 are VMs of these names, each with a uuid that
 * follows from its name. */
static void begin(struct made *made, const char *path, const char *first, const char *second)
{
	const char *names[] = {first, second};

	made_begin(made, path, second ? 2 : 1);
	for (size_t i = 0; i < made->vms.count; i++) {
		set(&made->vms.at[i].name, names[i]);
		set(&made->vms.at[i].uuid, names[i]);
		made->vms.at[i].started = 1 + !strcmp(path, SECOND);
	}
}

/* 6 ticks of "db" in user space; 3 of "web" in the kernel. */
static void make_first(void)
{
	struct made made;

	begin(&made, FIRST, "db", "web");
	for (uint64_t tick = 1; tick < 7; tick++)
		made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	for (uint64_t tick = 7; tick < 10; tick++)
		made_guest(&made, 0, tick, 1, 1, VP_MODE_GUEST_KERNEL, MADE_HLT);
	made_end(&made, 10);
}

/* The other way round: process 1000 is "web" with 4 ticks, 2000 is "db" with 5. */
static void make_second(uint64_t end)
{
	struct made made;

	begin(&made, SECOND, "web", "db");
	for (uint64_t tick = 1; tick < 5; tick++)
		made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	for (uint64_t tick = 5; tick < 10; tick++)
		made_guest(&made, 1, tick, 1, 1, VP_MODE_GUEST_KERNEL, MADE_HLT);
	made_idle(&made, 0, 6);
	made_end(&made, end);
}

/* The first one until tick `cut`; the second one from `cut` on if both are the same. */
static struct vp_error *join_at(const char *first, const char *second, uint64_t cut,
				const struct vp_profile_options *options, struct vp_report *ret)
{
	const struct vp_naming_options naming = {0};
	const uint64_t at = MADE_START + cut * MADE_PERIOD;
	vp_recording_parts parts = {0};

	vp_vec_push(&parts, ((struct vp_recording_part){vp_strdup(first), {MADE_START, at}}));
	vp_vec_push(&parts, ((struct vp_recording_part){vp_strdup(second),
							{first == second ? at : MADE_START,
							 MADE_START + 20 * MADE_PERIOD}}));
	struct vp_error *error = vp_report_joined_make("store", &parts, &naming, options, ret);
	vp_recording_parts_deinit(&parts);
	return error;
}

static struct vp_error *join(const char *first, const char *second,
			     const struct vp_profile_options *options, struct vp_report *ret)
{
	return join_at(first, second, 10, options, ret);
}

/* Sum of the rows of that VM and kind. */
static uint64_t samples_of(const struct vp_report *report, const char *vm, uint32_t kind)
{
	uint64_t sum = 0;

	vp_vec_each (&report->profile.rows, row)
		if (row->kind == kind &&
		    (row->vm == VP_NONE ? !vm : vm && !strcmp(report->vms.at[row->vm].name, vm)))
			sum += row->samples;
	return sum;
}

static bool has_note(const struct vp_report *report, const char *part)
{
	vp_vec_each (&report->notes, note)
		if (strstr(*note, part))
			return true;
	return false;
}

static void test_vms(void **state)
{
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED, .per_vcpu = true};
	struct vp_report report;

	make_first();
	make_second(20);
	expect_no_error(join(FIRST, SECOND, &options, &report));
	assert_int_equal(report.vms.count, 2);
	assert_int_equal(samples_of(&report, "db", VP_KIND_USER), 6);
	assert_int_equal(samples_of(&report, "db", VP_KIND_KERNEL), 5);
	assert_int_equal(samples_of(&report, "web", VP_KIND_KERNEL), 3);
	assert_int_equal(samples_of(&report, "web", VP_KIND_USER), 4);
	assert_int_equal(samples_of(&report, NULL, VP_KIND_IDLE), 1);
	assert_int_equal(report.profile.parts.at[0].samples, 19);
	assert_int_equal(report.profile.counts.samples, 19);
	assert_true(fabs(report.duration - 0.030) < 1e-9);
	assert_string_equal(report.path, "store");
	assert_int_equal(report.begin, MADE_START);
	assert_int_not_equal(report.recording.end, 0);
	assert_true(has_note(&report, "2 recordings"));
	vp_report_deinit(&report);
}

/* Of one VM: its steal, by the exit after which it waited. */
static void test_guest(void **state)
{
	struct vp_profile_options options = {.view = VP_VIEW_GUEST, .vm = "db", .per_vcpu = true};
	struct vp_report report;
	struct made made;

	for (int i = 0; i < 2; i++) {
		begin(&made, i ? SECOND : FIRST, i ? "web" : "db", i ? "db" : "web");
		unsigned db = (unsigned)i, web = 1 - db;
		made_guest(&made, 0, 1, db, 0, VP_MODE_GUEST_USER, MADE_INTR);
		made_out(&made, 0, 2, db, 0, MADE_NPF, false);
		for (uint64_t tick = 3; tick < 6; tick++)
			made_guest(&made, 0, tick, web, 0, VP_MODE_GUEST_USER, MADE_INTR);
		made_in(&made, 0, 6, db, 0, MADE_NPF);
		made_guest(&made, 0, 7, db, 0, VP_MODE_GUEST_USER, MADE_INTR);
		made_end(&made, 10);
	}
	expect_no_error(join(FIRST, SECOND, &options, &report));
	vp_vec_each (&report.profile.parts, part)
		assert_string_equal(vp_report_vm(&report, part), "db");
	assert_int_equal(samples_of(&report, "db", VP_KIND_USER), 4);
	assert_int_equal(samples_of(&report, "db", VP_KIND_STEAL), 6);
	assert_int_equal(report.profile.reasons.count, 1);
	assert_int_equal(report.profile.reasons.at[0].count, 6);
	assert_int_equal(report.profile.reasons.at[0].exit.reason, MADE_NPF);
	vp_report_deinit(&report);

	/* Each has one VM, but not the same. */
	begin(&made, FIRST, "db", NULL);
	made_end(&made, 10);
	begin(&made, SECOND, "web", NULL);
	made_end(&made, 10);
	options.vm = NULL;
	struct vp_error *error = join(FIRST, SECOND, &options, &report);
	assert_int_equal(vp_error_kind(error), VP_ERROR_USAGE);
	expect_error(error, "one of db, web");
}

static void test_left_out(void **state)
{
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	struct vp_report report;
	struct made made;

	make_first();
	expect_no_error(join_at(FIRST, FIRST, 4, &options, &report)); /* cut at a sample */
	assert_int_equal(report.profile.parts.at[0].samples, 9);
	vp_report_deinit(&report);
	expect_no_error(join(FIRST, "nothing", &options, &report));
	assert_true(has_note(&report, "'nothing' is left out: "));
	assert_int_equal(report.profile.parts.at[0].samples, 9);
	vp_report_deinit(&report);
	begin(&made, SECOND, "mail", NULL);
	made_guest(&made, 0, 1, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 10);
	options.vm = "web";
	expect_no_error(join(FIRST, SECOND, &options, &report));
	assert_true(has_note(&report, "'" SECOND "' is left out: there is no VM 'web'"));
	assert_int_equal(samples_of(&report, "web", VP_KIND_KERNEL), 3);
	vp_report_deinit(&report);
	options.vm = "ftp";
	expect_error(join(FIRST, SECOND, &options, &report),
		     "none of 2 recordings can be used: '" FIRST "' is left out: there is no VM");
	/* Wrong usage is not a property of a recording. */
	options = (struct vp_profile_options){.view = VP_VIEW_GUEST};
	struct vp_error *error = join(FIRST, SECOND, &options, &report);
	assert_int_equal(vp_error_kind(error), VP_ERROR_USAGE);
	expect_error(error, "give --vm NAME");
}

static void make_sampled(const char *path, uint64_t period, const char *trigger,
			 enum vp_weighting weighting, bool chains, uint64_t end)
{
	struct made made;

	begin(&made, path, "db", NULL);
	made.about.period_ns = period;
	set(&made.about.trigger, trigger);
	made.about.weighting = weighting;
	made.about.chains = chains;
	made_guest(&made, 0, 1, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, end);
}

static void test_units(void **state)
{
	static const char different[] =
	    "sampled by different events or rates: choose a part of it by --time (from '" SECOND;
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	struct vp_report report;

	make_sampled(FIRST, MADE_PERIOD, "cpu-clock", VP_WEIGHTING_TICKS, false, 10);
	make_sampled(SECOND, 2 * MADE_PERIOD, "cpu-clock", VP_WEIGHTING_TICKS, false, 10);
	expect_error(join(FIRST, SECOND, &options, &report), different);
	make_sampled(SECOND, MADE_PERIOD, "cycles", VP_WEIGHTING_TICKS, false, 10);
	expect_error(join(FIRST, SECOND, &options, &report), different);
	make_sampled(SECOND, MADE_PERIOD, "cpu-clock", VP_WEIGHTING_TIME, false, 10);
	expect_error(join(FIRST, SECOND, &options, &report), different);
	/* Times can be added at any rate. */
	make_sampled(FIRST, 2 * MADE_PERIOD, "cycles", VP_WEIGHTING_TIME, false, 10);
	expect_no_error(join(FIRST, SECOND, &options, &report));
	assert_int_equal(report.profile.counts.samples, 2);
	vp_report_deinit(&report);
}

/* Of another boot: 100 s later by time of day, but not by the clock that began anew. */
static void test_gap(void **state)
{
	static const char line[] = "\toffset_s = ";
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	struct vp_buffer metadata = {0}, later = {0};
	struct vp_report report;

	make_first();
	make_second(20);
	expect_no_error(vp_file_read(SECOND "/host/metadata", 1 << 20, &metadata));
	const char *text = vp_buffer_text(&metadata), *at = strstr(text, line);
	assert_non_null(at);
	vp_buffer_append(&later, text, (size_t)(at - text));
	vp_buffer_printf(&later, "%s10%s", line, at + strlen(line));
	expect_no_error(vp_file_publish(SECOND "/host/metadata", later.bytes, later.size));
	expect_no_error(join(FIRST, SECOND, &options, &report));
	assert_true(has_note(&report, "2 recordings; nothing was recorded in 100 s between them"));
	vp_report_deinit(&report);
	vp_buffer_deinit(&metadata);
	vp_buffer_deinit(&later);
}

static void test_ends(void **state)
{
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED, .chains = true};
	struct vp_report report;

	/* Stacks of a half would be stacks of a half. */
	make_sampled(FIRST, MADE_PERIOD, "cpu-clock", VP_WEIGHTING_TICKS, true, 10);
	make_sampled(SECOND, MADE_PERIOD, "cpu-clock", VP_WEIGHTING_TICKS, false, 0);
	expect_no_error(join(FIRST, SECOND, &options, &report));
	assert_false(report.options.chains);
	assert_int_equal(report.profile.nodes.count, 0);
	/* The second one was interrupted: it ends with its last record. */
	assert_true(has_note(&report, "'" SECOND "': the recording was interrupted"));
	assert_int_equal(report.recording.end, 0);
	assert_true(fabs(report.duration - 0.011) < 1e-9);
	vp_report_deinit(&report);
	options.needs_chains = true;
	expect_no_error(join(FIRST, SECOND, &options, &report));
	assert_true(report.options.chains);
	assert_true(has_note(&report, "'" SECOND "' is left out: the recording '" SECOND
				      "' has no call chains"));
	assert_int_equal(report.profile.counts.samples, 1);
	vp_report_deinit(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vms),      cmocka_unit_test(test_guest),
	    cmocka_unit_test(test_left_out), cmocka_unit_test(test_units),
	    cmocka_unit_test(test_gap),      cmocka_unit_test(test_ends)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
