/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Grades of the account: their names, the errors of exits that were not timed, and time that is
 * divided by samples. */
#include "account_records.h"

#include <math.h>

#include "analyze/account/exit_sums.h"
#include "schema/account_grade.h"

enum { HLT = 0x78, NPF = 0x400, CPUID = 0x72 };

static vp_vms vms;
static struct vp_account account;

static int setup(void **state)
{
	vms = (vp_vms){0};
	two_vms(&vms);
	vp_account_init(&account, &vms);
	return 0;
}

static int teardown(void **state)
{
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
	return 0;
}

static void test_names(void **state)
{
	enum vp_account_grade grade = VP_ACCOUNT_EXACT;

	for (int i = 0; i < VP_ACCOUNT_GRADES; i++) {
		assert_true(vp_account_grade_parse(vp_account_grade_name((enum vp_account_grade)i),
						   &grade));
		assert_int_equal(grade, i);
	}
	assert_false(vp_account_grade_parse("", &grade));
	assert_false(vp_account_grade_parse("exactly", &grade));
	assert_int_equal(grade, VP_ACCOUNT_GRADES - 1);
}

/* What is estimated for many sets of exits is off as far as the variance says. */
static void test_variance(void **state)
{
	enum { SETS = 400, EXITS = 4000 };
	unsigned seed = 7;
	double squares = 0, variances = 0;

	for (int set = 0; set < SETS; set++) {
		struct vp_exit_timing timing = {0};
		double estimated = 0, all = 0;
		uint64_t skip = 0, since = 0;
		for (int i = 0; i < EXITS; i++) {
			uint64_t x = 50 + (uint64_t)rand_r(&seed) % 1000;
			all += (double)x * VP_TIMING_UNIT_NS;
			since++;
			if (skip && i < EXITS - 1) {
				skip--;
				continue;
			}
			timing.timed++;
			timing.sum += x;
			timing.squares += x * x;
			timing.weights += since * (since - 1);
			estimated += (double)(x * since * VP_TIMING_UNIT_NS);
			since = 0;
			skip = (uint64_t)rand_r(&seed) % 39;
		}
		squares += (estimated - all) * (estimated - all);
		variances += vp_exit_timing_variance(&timing);
	}
	assert_true(squares > 0.75 * variances && squares < 1.33 * variances);
}

static void test_variance_of_few(void **state)
{
	struct vp_exit_timing timing = {0};

	assert_true(vp_exit_timing_variance(&timing) == 0);
	timing = (struct vp_exit_timing){.timed = 2, .sum = 6, .squares = 20};
	assert_true(vp_exit_timing_variance(&timing) == 0); /* each was timed */
	timing.weights = 10;                                /* s^2 = 20 - 2 * 9 */
	assert_true(fabs(vp_exit_timing_variance(&timing) - 2 * 256 * 10) < 1e-6);
	timing = (struct vp_exit_timing){.timed = 1, .sum = 3, .squares = 9, .weights = 6};
	assert_true(fabs(vp_exit_timing_variance(&timing) - 9 * 256 * 6) < 1e-6);
	struct vp_exit_timing sum = {1, 2, 3, 4};
	vp_exit_timing_add(&sum, &timing);
	assert_int_equal(sum.timed, 2);
	assert_int_equal(sum.sum, 5);
	assert_int_equal(sum.squares, 12);
	assert_int_equal(sum.weights, 10);
}

static void take_sampled(uint32_t vcpu, uint32_t reason, uint64_t weights)
{
	TAKE(&account, exit_account, .vm = FIRST_VM, .vcpu = vcpu, .reason = reason, .vendor = 2,
	     .count = 1000, .total = 1000000, .kernel = 1000000);
	TAKE(&account, exit_sampling, .vm = FIRST_VM, .vcpu = vcpu, .reason = reason, .vendor = 2,
	     .timed = 2, .sum = 6, .squares = 20, .weights = weights);
}

/* Errors of reasons add up to that of the vCPU, and a place has its exits' share. */
static void test_sampled(void **state)
{
	account.grade = VP_ACCOUNT_SAMPLED;
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .tid = FIRST_VM + 1, .vcpu = 0, .begin = 1,
	     .end = 1000001, .guest = 1000000);
	take_sampled(0, NPF, 200);
	take_sampled(0, CPUID, 50);
	take_sampled(1, NPF, 100000); /* another's */
	const struct vp_account_times *times = &account.times.at[0];
	assert_true(fabs(vp_account_guest_error(&account, times) - 3 * sqrt(2 * 256 * 250)) < 1e-6);
	TAKE(&account, exit_site_waits, .vm = FIRST_VM, .reason = CPUID, .vendor = 2, .count = 250,
	     .ns = 5, .flags = 1);
	struct vp_exit_sums sums = {0};
	vp_exit_sums_add_site(&sums, &account, &account.sites.at[0]);
	assert_true(fabs(sums.variance - 2 * 256 * 50 / 4.0) < 1e-6);
	struct vp_exit_sums rest = {0};
	vp_exit_sums_add_cost(&rest, &account.costs.at[1]);
	vp_exit_sums_subtract(&rest, &sums);
	assert_true(fabs(rest.variance - 2 * 256 * 50 * 0.75) < 1e-6);
}

static void test_column_of_errors(void **state)
{
	struct vp_account_view view;
	struct vp_table table = {0};

	take_sampled(0, NPF, 200);
	expect_no_error(vp_account_view_init(&view, &account, NULL));
	vp_account_exits_table(&view, &table);
	size_t columns = table.columns.count;
	vp_table_deinit(&table);
	table = (struct vp_table){0};
	account.grade = VP_ACCOUNT_SAMPLED;
	vp_account_exits_table(&view, &table);
	assert_int_equal(table.columns.count, columns + 1);
	assert_string_equal(table.columns.at[columns].key, "work_error_ns");
	assert_int_equal(table.cells.at[columns].count, 3 * 320); /* 2 * 256 * 200 = 320^2 */
	vp_table_deinit(&table);
	vp_account_view_deinit(&view);
}

static void take_samples(unsigned guest, unsigned kernel, unsigned vmm)
{
	for (unsigned i = 0; i < guest; i++)
		TAKE(&account, guest_sample, .vm = FIRST_VM, .tid = FIRST_VM + 1, .mode = 5);
	for (unsigned i = 0; i < kernel; i++)
		TAKE(&account, vcpu_sample, .vm = FIRST_VM, .tid = FIRST_VM + 1, .mode = 1);
	for (unsigned i = 0; i < vmm; i++)
		TAKE(&account, host_sample, .pid = FIRST_VM, .tid = FIRST_VM + 1, .mode = 2);
	/* Somebody else's. */
	TAKE(&account, host_sample, .pid = FIRST_VM, .tid = FIRST_VM + 9, .mode = 2);
	TAKE(&account, host_sample, .mode = 1);
}

/* A vCPU that ran for 0.8 s of one is divided as its samples are. */
static void test_states(void **state)
{
	struct vp_account_checks checks;

	account.grade = VP_ACCOUNT_STATES;
	take_samples(600, 120, 80);
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .tid = FIRST_VM + 1, .vcpu = 0, .begin = 1,
	     .end = 1000000001, .guest = 800000000, .halted = 200000000);
	vp_account_divide_running(&account);
	const struct vp_account_times *times = &account.times.at[0];
	assert_int_equal(times->states[VP_STATE_GUEST], 600000000);
	assert_int_equal(times->states[VP_STATE_KERNEL], 120000000);
	assert_int_equal(times->states[VP_STATE_VMM], 80000000);
	assert_int_equal(times->states[VP_STATE_HALTED], 200000000);
	double error = 800000000 * (3 * sqrt(0.75 * 0.25 / 800) + 3.0 / 800);
	assert_true(fabs(vp_account_guest_error(&account, times) - error) < 1);
	vp_account_check(&account, 1000000, 0, &checks);
	assert_true(checks.closes && checks.sampled && checks.samples_agree);
	assert_true(checks.worst_sample < 0.001);
	/* Samples of a thread that did not run. */
	take_samples(100, 0, 0);
	vp_account_check(&account, 1000000, 0, &checks);
	assert_false(checks.samples_agree);
}

/* Without samples nothing is known of the time in which it ran. */
static void test_states_without_samples(void **state)
{
	account.grade = VP_ACCOUNT_STATES;
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .tid = FIRST_VM + 1, .vcpu = 0, .begin = 1,
	     .end = 1000000001, .guest = 800000000, .halted = 200000000);
	vp_account_divide_running(&account);
	assert_int_equal(account.times.at[0].states[VP_STATE_GUEST], 800000000);
	assert_true(vp_account_guest_error(&account, &account.times.at[0]) == 800000000);
}

/* Where exits are timed, samples divide nothing. */
static void test_others_are_not_divided(void **state)
{
	take_samples(1, 1, 1);
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .tid = FIRST_VM + 1, .vcpu = 0, .begin = 1,
	     .end = 1000000001, .guest = 1000000000);
	vp_account_divide_running(&account);
	assert_int_equal(account.times.at[0].states[VP_STATE_GUEST], 1000000000);
	assert_true(vp_account_guest_error(&account, &account.times.at[0]) == 0);
}

/* In a window, half of a record's sums. */
static void test_window(void **state)
{
	account.grade = VP_ACCOUNT_SAMPLED;
	account.window.window = (struct vp_window){.from = 500, .to = 2000};
	TAKE(&account, vcpu_account, .time = 1000, .vm = FIRST_VM, .tid = FIRST_VM + 1, .vcpu = 0,
	     .begin = 0, .end = 1000, .guest = 1000);
	TAKE(&account, exit_account, .time = 1000, .vm = FIRST_VM, .reason = NPF, .vendor = 2,
	     .count = 10);
	TAKE(&account, exit_sampling, .time = 1000, .vm = FIRST_VM, .reason = NPF, .vendor = 2,
	     .timed = 20, .sum = 40, .squares = 60, .weights = 80);
	const struct vp_exit_timing *timing = &account.costs.at[0].timing;
	assert_int_equal(timing->timed, 10);
	assert_int_equal(timing->sum, 20);
	assert_int_equal(timing->squares, 30);
	assert_int_equal(timing->weights, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_variance),
	    cmocka_unit_test(test_variance_of_few),
	    cmocka_unit_test_setup_teardown(test_sampled, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_column_of_errors, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_states, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_states_without_samples, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_others_are_not_divided, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_window, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
