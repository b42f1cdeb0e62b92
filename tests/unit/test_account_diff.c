/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two recordings compared: verdicts follow from the intervals, and these from the seconds. */
#include "unit.h"

#include <math.h>

#include "analyze/account/account_diff.h"
#include "base/buffer.h"
#include "make_recording.h"
#include "render/render_diff.h"
#include "schema/records.h"

#define BEFORE "diff_before"
#define AFTER "diff_after"
#define SECOND 1000000000ULL
#define PERCENT (SECOND / 100)

static const struct vp_stream_id account_stream = {VP_STREAM_ACCOUNT, VP_NO_PCPU};

/* Of each second: percent of steal, and exits; the rest is guest time. */
struct made_second {
	uint64_t steal, exits;
};

static void record(const char *name, unsigned n_vms, const struct made_second *seconds,
		   size_t count)
{
	struct made made;

	made_begin(&made, name, n_vms);
	for (size_t i = 0; i < count; i++)
		for (uint32_t vm = 0; vm < n_vms; vm++) {
			uint64_t begin = MADE_START + i * SECOND,
				 steal = seconds[i].steal * PERCENT;
			/* vm1 is idle. */
			struct vp_vcpu_account times = {.time = begin + SECOND,
							.id = VP_ID_vcpu_account,
							.vm = 1000 * (vm + 1),
							.begin = begin,
							.end = begin + SECOND,
							.guest = vm ? 0 : SECOND - steal,
							.preempted = vm ? 0 : steal,
							.halted = vm ? SECOND : 0,
							.exits = vm ? 0 : seconds[i].exits};
			vp_trace_append(made.writer, account_stream, &times);
		}
	vp_trace_flush(made.writer, account_stream, 0);
	made_end(&made, 1);
}

static const struct vp_diff_row *row_of(const struct vp_diff *diff, const char *vm,
					enum vp_diff_measure measure)
{
	vp_vec_each (&diff->rows, row)
		if (!strcmp(row->vm, vm) && row->measure == measure)
			return row;
	fail_msg("there is no row of %s", vm);
	return NULL;
}

static void test_verdicts(void **state)
{
	static const struct made_second noisy[] = {{20, 900}, {30, 1100}, {25, 1000}, {25, 1000}};
	static const struct made_second less[] = {{2, 1010}, {4, 990}, {3, 1000}, {3, 1000}};
	struct vp_diff diff;

	record(BEFORE, 2, noisy, VP_ARRAY_SIZE(noisy));
	record(AFTER, 2, less, VP_ARRAY_SIZE(less));
	expect_no_error(vp_diff_make(BEFORE, AFTER, NULL, &diff));
	const struct vp_diff_row *row = row_of(&diff, "vm0", VP_DIFF_STEAL);
	assert_true(fabs(row->before - 25) < 1e-9 && fabs(row->after - 3) < 1e-9);
	/* Variances 50/3 and 2/3 of 4 seconds: Welch has 3.2 degrees of freedom, t is 3.182. */
	double wide = 3.182 * sqrt((50.0 / 3 + 2.0 / 3) / 4);
	assert_true(fabs(row->low - (-22 - wide)) < 1e-6 && fabs(row->high - (-22 + wide)) < 1e-6);
	assert_int_equal(row->verdict, VP_DIFF_BETTER);
	assert_int_equal(row_of(&diff, "vm0", VP_DIFF_GUEST)->verdict, VP_DIFF_MORE);
	row = row_of(&diff, "vm0", VP_DIFF_EXITS);
	assert_true(fabs(row->before - 1000) < 1e-9 && row->verdict == VP_DIFF_SAME);
	assert_int_equal(row_of(&diff, "vm1", VP_DIFF_STEAL)->verdict, VP_DIFF_SAME);
	assert_int_equal(diff.rows.count, 2 * VP_DIFF_MEASURES);
	vp_diff_deinit(&diff);

	/* The other way round. */
	expect_no_error(vp_diff_make(AFTER, BEFORE, "vm0", &diff));
	assert_int_equal(row_of(&diff, "vm0", VP_DIFF_STEAL)->verdict, VP_DIFF_WORSE);
	assert_int_equal(row_of(&diff, "vm0", VP_DIFF_GUEST)->verdict, VP_DIFF_LESS);
	assert_int_equal(diff.rows.count, VP_DIFF_MEASURES);
	struct vp_buffer out = {0};
	vp_render_diff_csv(&diff, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "\nvm0,steal,%,3,25,22,"));
	out.size = 0;
	vp_render_diff_text(&diff, AFTER, BEFORE, 0, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "3.00%   25.00%  +22.00%"));
	vp_buffer_deinit(&out);
	vp_diff_deinit(&diff);
}

/* An interval that ends just below 0 is not shown as one that has 0 in it. */
static void test_sign_of_small_numbers(void **state)
{
	struct vp_diff_row row = {.vm = (char[]){"a"},
				  .measure = VP_DIFF_STEAL,
				  .before = 0.24,
				  .after = 0.21,
				  .low = -0.06,
				  .high = -0.004,
				  .verdict = VP_DIFF_BETTER};
	struct vp_diff diff = {.rows = {.at = &row, .count = 1}};
	struct vp_buffer out = {0};

	vp_render_diff_text(&diff, BEFORE, AFTER, 0, &out);
	assert_non_null(strstr(vp_buffer_text(&out), " -0.00% "));
	row.high = 0;
	row.verdict = VP_DIFF_SAME;
	out.size = 0;
	vp_render_diff_text(&diff, BEFORE, AFTER, 0, &out);
	assert_non_null(strstr(vp_buffer_text(&out), " +0.00% "));
	vp_buffer_deinit(&out);
}

/* Every state is in a measure; VMs are matched by name, whatever their order. */
static void record_states(const char *name, bool other_way_round)
{
	struct made made;

	made_begin(&made, name, 2);
	for (unsigned i = 0; i < 3; i++)
		for (uint32_t vm = 0; vm < 2; vm++) {
			uint64_t begin = MADE_START + i * SECOND;
			struct vp_vcpu_account times = {.time = begin + SECOND,
							.id = VP_ID_vcpu_account,
							.vm = 1000 * (vm + 1),
							.begin = begin,
							.end = begin + SECOND,
							.guest = 7 * PERCENT,
							.kernel = 9 * PERCENT,
							.poll = 8 * PERCENT,
							.vmm = 10 * PERCENT,
							.halted = 11 * PERCENT,
							.waiting = 12 * PERCENT,
							.waking = 13 * PERCENT,
							.preempted = 6 * PERCENT,
							.throttled = 5 * PERCENT,
							.irq = 19 * PERCENT,
							.exits = 70 + vm,
							.wakeups = 30 + vm};
			vp_trace_append(made.writer, account_stream, &times);
		}
	vp_trace_flush(made.writer, account_stream, 0);
	if (other_way_round) {
		char *name_of_first = made.vms.at[0].name;
		made.vms.at[0].name = made.vms.at[1].name;
		made.vms.at[1].name = name_of_first;
	}
	made_end(&made, 1);
}

static void test_measures(void **state)
{
	static const double shares[] = {43, 27, 7, 23};
	struct vp_diff diff;

	record_states(BEFORE, false);
	record_states(AFTER, true);
	expect_no_error(vp_diff_make(BEFORE, AFTER, NULL, &diff));
	assert_int_equal(diff.rows.count, 2 * VP_DIFF_MEASURES);
	for (size_t i = 0; i < VP_ARRAY_SIZE(shares); i++) {
		const struct vp_diff_row *row = row_of(&diff, "vm1", (enum vp_diff_measure)i);
		assert_true(fabs(row->before - shares[i]) < 1e-9);
		assert_true(fabs(row->after - shares[i]) < 1e-9);
	}
	const struct vp_diff_row *row = row_of(&diff, "vm1", VP_DIFF_EXITS);
	assert_true(fabs(row->before - 71) < 1e-9 && fabs(row->after - 70) < 1e-9);
	assert_int_equal(row->verdict, VP_DIFF_BETTER);
	assert_int_equal(row_of(&diff, "vm0", VP_DIFF_EXITS)->verdict, VP_DIFF_WORSE);
	row = row_of(&diff, "vm0", VP_DIFF_WAKEUPS);
	assert_true(fabs(row->before - 30) < 1e-9 && fabs(row->after - 31) < 1e-9);
	assert_int_equal(row->verdict, VP_DIFF_MORE);
	vp_diff_deinit(&diff);
}

static void test_too_short(void **state)
{
	static const struct made_second seconds[] = {{20, 900}, {30, 1100}};
	struct vp_diff diff;

	record(BEFORE, 2, seconds, 2);
	record(AFTER, 1, seconds, 2);
	expect_no_error(vp_diff_make(BEFORE, AFTER, NULL, &diff));
	assert_int_equal(row_of(&diff, "vm0", VP_DIFF_STEAL)->verdict, VP_DIFF_UNKNOWN);
	assert_string_equal(diff.notes.at[0], "VM 'vm1' is only in '" BEFORE "'");
	assert_non_null(strstr(diff.notes.at[1], "at least 3 seconds"));
	struct vp_buffer out = {0};
	vp_render_diff_json(&diff, BEFORE, AFTER, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "\"low\": null, \"high\": null, \"verdict\": "
						     "\"too short\""));
	vp_buffer_deinit(&out);
	vp_diff_deinit(&diff);
	expect_no_error(vp_diff_make(AFTER, BEFORE, NULL, &diff));
	assert_string_equal(diff.notes.at[0], "VM 'vm1' is only in '" BEFORE "'");
	vp_diff_deinit(&diff);
	expect_error(vp_diff_make(BEFORE, AFTER, "vm1", &diff), "there is no VM 'vm1'");
	expect_error(vp_diff_make(BEFORE, "nowhere", NULL, &diff), "nowhere");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_verdicts), cmocka_unit_test(test_sign_of_small_numbers),
	    cmocka_unit_test(test_measures), cmocka_unit_test(test_too_short)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
