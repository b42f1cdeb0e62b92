/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of 'vperf top' and their history, of two VMs with two vCPUs each. */
#include <math.h>

#include "account_records.h"
#include "analyze/report/live.h"

#define SECOND 1000000000ULL

struct fixture {
	vp_vms vms;
	struct vp_account account;
	struct vp_account_view view;
	struct vp_live live;
};

static void begin(struct fixture *fixture)
{
	*fixture = (struct fixture){0};
	two_vms(&fixture->vms);
	vp_account_init(&fixture->account, &fixture->vms);
	expect_no_error(vp_account_view_init(&fixture->view, &fixture->account, NULL));
}

/* The account of the next update: nothing is in it yet. */
static void next_account(struct fixture *fixture)
{
	vp_account_deinit(&fixture->account);
	vp_account_init(&fixture->account, &fixture->vms);
}

static void end(struct fixture *fixture)
{
	vp_live_deinit(&fixture->live);
	vp_account_view_deinit(&fixture->view);
	vp_account_deinit(&fixture->account);
	vp_vms_deinit(&fixture->vms);
}

/* Half a second of a vCPU: `guest` of it in the guest, the rest preempted. */
static void put(struct fixture *fixture, uint32_t vm, uint32_t vcpu, uint64_t guest, uint64_t exits)
{
	TAKE(&fixture->account, vcpu_account, .vm = vm, .vcpu = vcpu, .tid = vm + vcpu + 1,
	     .begin = SECOND, .end = SECOND + SECOND / 2, .guest = guest,
	     .preempted = SECOND / 2 - guest, .exits = exits);
}

static const struct vp_live_row *row_of(const struct fixture *fixture, uint32_t vm, uint32_t vcpu)
{
	vp_vec_each (&fixture->live.rows, row)
		if (row->vm == vm && row->vcpu == vcpu)
			return row;
	fail_msg("no row of VM %u, vCPU %u", vm, vcpu);
	return NULL;
}

static float value_of(const struct fixture *fixture, uint32_t vm, uint32_t vcpu,
		      enum vp_live_value value, uint64_t ago)
{
	return vp_live_value(&fixture->live, row_of(fixture, vm, vcpu), value, ago);
}

static void expect_live(const struct fixture *fixture, uint32_t vm, uint32_t vcpu,
			enum vp_live_value value, float expected)
{
	float is = value_of(fixture, vm, vcpu, value, 0);

	/* A float has seven digits. */
	if (!(fabsf(is - expected) <= 1e-5F * expected))
		fail_msg("VM %u, vCPU %u, value %u is %g, not %g", vm, vcpu, value, (double)is,
			 (double)expected);
}

static const uint32_t of_vm = UINT32_MAX;

/* Each state is part of one value: all differ, so that none can stand for another one. */
static void test_states(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	TAKE(&fixture.account, vcpu_account, .vm = SECOND_VM, .vcpu = 1, .tid = 2002,
	     .begin = SECOND, .end = 3 * SECOND + 46000000, .guest = 2000000, .kernel = 4000000,
	     .poll = 8000000, .vmm = 16000000, .halted = 32000000, .waiting = 64000000,
	     .waking = 128000000, .preempted = 256000000, .throttled = 512000000, .irq = 1024000000,
	     .exits = 1023);
	vp_live_take(&fixture.live, &fixture.view);
	expect_live(&fixture, 1, 1, VP_LIVE_GUEST, 100.0F * 2 / 2046);
	expect_live(&fixture, 1, 1, VP_LIVE_HOST, 100.0F * (4 + 8 + 16) / 2046);
	expect_live(&fixture, 1, 1, VP_LIVE_IDLE, 100.0F * (32 + 64) / 2046);
	expect_live(&fixture, 1, 1, VP_LIVE_STEAL, 100.0F * (128 + 256 + 512 + 1024) / 2046);
	expect_live(&fixture, 1, 1, VP_LIVE_EXITS, 500);
	assert_int_equal(fixture.live.rows.count, 2);
	end(&fixture);
}

/* A VM's row: the mean of its vCPUs, of as many as there are, and the sum of their exits. */
static void test_vms(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	put(&fixture, FIRST_VM, 0, SECOND / 2, 100);
	put(&fixture, SECOND_VM, 0, SECOND / 4, 1000);
	put(&fixture, FIRST_VM, 1, SECOND / 8, 30);
	put(&fixture, FIRST_VM, 2, 0, 7);
	vp_live_take(&fixture.live, &fixture.view);
	expect_live(&fixture, 0, of_vm, VP_LIVE_GUEST, (100 + 25 + 0) / 3.0F);
	expect_live(&fixture, 0, of_vm, VP_LIVE_STEAL, (0 + 75 + 100) / 3.0F);
	expect_live(&fixture, 0, of_vm, VP_LIVE_EXITS, 2 * (100 + 30 + 7));
	expect_live(&fixture, 1, of_vm, VP_LIVE_GUEST, 50);
	expect_live(&fixture, 1, of_vm, VP_LIVE_EXITS, 2000);
	assert_int_equal(row_of(&fixture, 0, of_vm)->vcpus, 3);
	assert_int_equal(row_of(&fixture, 1, of_vm)->vcpus, 1);
	assert_int_equal(row_of(&fixture, 0, 2)->vcpus, 1);
	end(&fixture);
}

/* Sums begin anew with each update; what was not in one has no value there. */
static void test_updates(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	put(&fixture, FIRST_VM, 0, SECOND / 2, 100);
	put(&fixture, FIRST_VM, 1, 0, 50);
	vp_live_take(&fixture.live, &fixture.view);
	assert_int_equal(fixture.live.updates, 1);
	assert_true(isnan(value_of(&fixture, 0, 0, VP_LIVE_GUEST, 1)));
	next_account(&fixture);
	put(&fixture, FIRST_VM, 1, SECOND / 4, 10);
	vp_live_take(&fixture.live, &fixture.view);
	assert_int_equal(fixture.live.updates, 2);
	expect_live(&fixture, 0, of_vm, VP_LIVE_GUEST, 50);
	expect_live(&fixture, 0, of_vm, VP_LIVE_EXITS, 20);
	assert_int_equal(row_of(&fixture, 0, of_vm)->vcpus, 1);
	assert_int_equal(row_of(&fixture, 0, of_vm)->last_update, 2);
	assert_int_equal(row_of(&fixture, 0, 0)->last_update, 1);
	assert_true(isnan(value_of(&fixture, 0, 0, VP_LIVE_GUEST, 0)));
	assert_true(isnan(value_of(&fixture, 0, 0, VP_LIVE_EXITS, 0)));
	assert_float_equal(value_of(&fixture, 0, 0, VP_LIVE_GUEST, 1), 100, 1e-4);
	assert_float_equal(value_of(&fixture, 0, of_vm, VP_LIVE_GUEST, 1), 50, 1e-4);
	/* One that is missed counts as an update, of nobody. */
	vp_live_miss(&fixture.live);
	assert_int_equal(fixture.live.updates, 3);
	assert_true(isnan(value_of(&fixture, 0, 1, VP_LIVE_GUEST, 0)));
	assert_float_equal(value_of(&fixture, 0, 1, VP_LIVE_GUEST, 1), 50, 1e-4);
	assert_float_equal(value_of(&fixture, 0, 1, VP_LIVE_GUEST, 2), 0, 1e-4);
	end(&fixture);
}

/* The history is a ring: the oldest value makes way, and is not taken for a new one. */
static void test_ring(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	for (uint64_t i = 0; i < VP_LIVE_HISTORY + 2; i++) {
		next_account(&fixture);
		put(&fixture, FIRST_VM, 0, (i + 1) * (SECOND / 200), i);
		if (i < 2)
			put(&fixture, FIRST_VM, 1, SECOND / 2, 1);
		vp_live_take(&fixture.live, &fixture.view);
	}
	for (uint64_t ago = 0; ago < VP_LIVE_HISTORY; ago++)
		assert_float_equal(value_of(&fixture, 0, 0, VP_LIVE_GUEST, ago),
				   (double)(VP_LIVE_HISTORY + 2 - ago), 1e-3);
	assert_true(isnan(value_of(&fixture, 0, 0, VP_LIVE_GUEST, VP_LIVE_HISTORY)));
	for (uint64_t ago = 0; ago < VP_LIVE_HISTORY; ago++)
		for (unsigned value = 0; value < VP_LIVE_VALUES; value++)
			assert_true(isnan(value_of(&fixture, 0, 1, value, ago)));
	/* One that is new has no values from before. */
	put(&fixture, SECOND_VM, 0, SECOND / 2, 1);
	vp_live_take(&fixture.live, &fixture.view);
	for (uint64_t ago = 0; ago < VP_LIVE_HISTORY; ago++)
		for (unsigned value = 0; value < VP_LIVE_VALUES; value++)
			assert_int_equal(!isnan(value_of(&fixture, 1, 0, value, ago)), ago == 0);
	end(&fixture);
}

/* Only what the view shows, and what there was time of. */
static void test_shown(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	put(&fixture, FIRST_VM, 0, SECOND / 2, 100);
	put(&fixture, SECOND_VM, 0, SECOND / 2, 100);
	put(&fixture, SECOND_VM, 1, 0, 100);
	TAKE(&fixture.account, exit_account, .vm = FIRST_VM, .vcpu = 1, .count = 5);
	TAKE(&fixture.account, vcpu_account, .vm = FIRST_VM, .vcpu = 1, .tid = 1002,
	     .begin = SECOND, .end = SECOND, .exits = 3);
	vp_account_view_deinit(&fixture.view);
	expect_no_error(vp_account_view_init(&fixture.view, &fixture.account, "beta"));
	fixture.view.has_vcpu = true;
	fixture.view.vcpu = 1;
	vp_live_take(&fixture.live, &fixture.view);
	assert_int_equal(fixture.live.rows.count, 2);
	expect_live(&fixture, 1, 1, VP_LIVE_EXITS, 200);
	expect_live(&fixture, 1, of_vm, VP_LIVE_STEAL, 100);
	vp_account_view_deinit(&fixture.view);
	expect_no_error(vp_account_view_init(&fixture.view, &fixture.account, "alpha"));
	vp_live_take(&fixture.live, &fixture.view);
	assert_int_equal(fixture.live.rows.count, 4);
	assert_int_equal(row_of(&fixture, 0, of_vm)->vcpus, 1);
	end(&fixture);
}

static void expect_order(const struct fixture *fixture, const struct vp_live_order *order,
			 const uint32_t (*expected)[2], size_t count)
{
	vp_live_rows rows = {0};

	vp_live_rows_make(&fixture->live, order, &rows);
	assert_int_equal(rows.count, count);
	for (size_t i = 0; i < count; i++)
		if (rows.at[i]->vm != expected[i][0] || rows.at[i]->vcpu != expected[i][1])
			fail_msg("row %zu is VM %u, vCPU %u", i, rows.at[i]->vm, rows.at[i]->vcpu);
	vp_vec_deinit(&rows);
}

/* Most first; those with the same value by VM, then by vCPU. */
static void test_order(void **state)
{
	static const uint32_t by_guest[][2] = {{1, 0}, {0, 1}, {0, 0}, {0, 2}, {1, 1}};
	static const uint32_t by_steal[][2] = {{0, 0}, {0, 2}, {1, 1}, {0, 1}, {1, 0}};
	static const uint32_t by_exits[][2] = {{1, 1}, {0, 2}, {0, 1}, {0, 0}, {1, 0}};
	static const uint32_t by_place[][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}};
	static const uint32_t of_second[][2] = {{1, 0}, {1, 1}};
	static const uint32_t of_first[][2] = {{0, 1}, {0, 0}, {0, 2}};
	static const uint32_t vms[][2] = {{1, UINT32_MAX}, {0, UINT32_MAX}};
	static const uint32_t first_vm[][2] = {{0, UINT32_MAX}};
	struct vp_live_order order = {.sort = VP_LIVE_GUEST};
	struct fixture fixture;

	begin(&fixture);
	put(&fixture, FIRST_VM, 1, SECOND / 10, 30);
	put(&fixture, SECOND_VM, 0, SECOND / 2, 10);
	put(&fixture, FIRST_VM, 2, SECOND / 20, 40);
	put(&fixture, FIRST_VM, 0, SECOND / 20, 20);
	put(&fixture, SECOND_VM, 1, SECOND / 20, 50);
	vp_live_take(&fixture.live, &fixture.view);
	expect_order(&fixture, &order, by_guest, 5);
	order.sort = VP_LIVE_STEAL;
	expect_order(&fixture, &order, by_steal, 5);
	order.sort = VP_LIVE_EXITS;
	expect_order(&fixture, &order, by_exits, 5);
	order.sort = VP_LIVE_VALUES;
	expect_order(&fixture, &order, by_place, 5);
	order = (struct vp_live_order){.sort = VP_LIVE_GUEST, .has_vm = true, .vm = 1};
	expect_order(&fixture, &order, of_second, 2);
	order.vm = 0;
	expect_order(&fixture, &order, of_first, 3);
	order = (struct vp_live_order){.sort = VP_LIVE_GUEST, .by_vm = true};
	expect_order(&fixture, &order, vms, 2);
	order.has_vm = true;
	expect_order(&fixture, &order, first_vm, 1);
	/* The order is by the last update, and whoever was not in it has no row. */
	next_account(&fixture);
	put(&fixture, FIRST_VM, 0, SECOND / 4, 1);
	put(&fixture, FIRST_VM, 2, SECOND / 2, 1);
	vp_live_take(&fixture.live, &fixture.view);
	order = (struct vp_live_order){.sort = VP_LIVE_GUEST};
	expect_order(&fixture, &order, (const uint32_t[][2]){{0, 2}, {0, 0}}, 2);
	vp_live_miss(&fixture.live);
	expect_order(&fixture, &order, NULL, 0);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_states),  cmocka_unit_test(test_vms),
	    cmocka_unit_test(test_updates), cmocka_unit_test(test_ring),
	    cmocka_unit_test(test_shown),   cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
