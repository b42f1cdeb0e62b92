/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An account in a window: adjoining windows sum to the whole, what is cut is within its bound, and
 * single states are cut exactly. */
#include "account_records.h"

#include <string.h>

enum { HLT = 0x78, SECONDS = 4, BORDERS = 7 };
#define SECOND 1000000000ULL
#define START (50 * SECOND)

/* Inside of a record, at one's border, before and after all. */
static const uint64_t borders[BORDERS] = {0,
					  START + 1000,
					  START + 123456789,
					  START + SECOND,
					  START + SECOND + 700000001,
					  START + 3 * SECOND - 1000,
					  UINT64_MAX};

struct sums {
	uint64_t wall, states[VP_STATES], exits, wakeups, wakes, wake_ns, samples, counted;
	uint64_t cost[7], buckets, preempted, irq, thefts;
};

static vp_vms vms;

/* The vCPU is preempted in the first tenth of each second by somebody, then runs; a state that is
 * rare, and one whose share is odd. */
static void take_all(struct vp_account *account)
{
	for (uint64_t i = 0; i < SECONDS; i++) {
		uint64_t begin = START + i * SECOND, end = begin + SECOND;
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
			TAKE(account, vcpu_account, .time = end, .vm = FIRST_VM,
			     .tid = FIRST_VM + vcpu + 1, .vcpu = vcpu, .begin = begin, .end = end,
			     .guest = 700000000 + vcpu, .kernel = 199999993, .vmm = 7 - vcpu,
			     .preempted = 100000000, .exits = 101, .wakeups = 13 + i);
			TAKE(account, exit_account, .time = end, .vendor = VP_VENDOR_AMD,
			     .vm = FIRST_VM, .vcpu = vcpu, .reason = HLT, .count = 101,
			     .total = 100000023, .max = 5000 * (i + 1), .kernel = 23,
			     .stolen = 100000000);
			TAKE(account, exit_bucket, .time = end, .vendor = VP_VENDOR_AMD,
			     .vm = FIRST_VM, .vcpu = vcpu, .reason = HLT, .bucket = 30,
			     .count = 101);
			TAKE(account, wake_bucket, .time = end, .vm = FIRST_VM, .vcpu = vcpu,
			     .bucket = 3, .count = 13 + i, .ns = 1000);
		}
		TAKE(account, thief, .time = end, .vm = FIRST_VM, .vcpu = 1,
		     .state = VP_STATE_PREEMPTED, .kind = VP_BY_TASK, .number = 77, .ns = 100000000,
		     .count = 9);
		TAKE(account, thief, .time = end, .vm = FIRST_VM, .vcpu = 0, .state = VP_STATE_IRQ,
		     .kind = VP_BY_DEVICE, .number = 5, .ns = 3, .count = 1);
		TAKE(account, vm_samples, .time = end, .vm = FIRST_VM, .guest_kernel = 5 + i);
		TAKE(account, guest_sample, .time = begin + 300, .vm = FIRST_VM,
		     .tid = FIRST_VM + 1, .mode = VP_MODE_GUEST_USER);
	}
}

static void add_up(const struct vp_account *account, struct sums *sums)
{
	vp_vec_each (&account->times, times) {
		sums->wall += times->wall;
		for (size_t i = 0; i < VP_STATES; i++)
			sums->states[i] += times->states[i];
		sums->exits += times->exits;
		sums->wakeups += times->wakeups;
		sums->wakes += times->wakes[3];
		sums->wake_ns += times->wake_ns;
		sums->samples += times->guest_samples;
	}
	vp_vec_each (&account->of_vms, vm)
		sums->counted += vm->counted[VP_SAMPLE_GUEST_KERNEL];
	vp_vec_each (&account->costs, cost) {
		const uint64_t parts[] = {cost->count,  cost->total,   cost->kernel, cost->vmm,
					  cost->stolen, cost->blocked, cost->waking};
		for (size_t i = 0; i < VP_ARRAY_SIZE(parts); i++)
			sums->cost[i] += parts[i];
		for (size_t i = 0; i < VP_BUCKETS; i++)
			sums->buckets += cost->buckets[i];
	}
	vp_vec_each (&account->thefts, theft) {
		sums->preempted += theft->preempted;
		sums->irq += theft->irq;
		sums->thefts += theft->count;
	}
}

static void open_window(struct vp_account *account, uint64_t from, uint64_t to)
{
	vp_account_init(account, &vms);
	account->window.window = (struct vp_window){from, to};
}

static void close_window(struct vp_account *account)
{
	vp_account_settle(account);
	vp_account_settle_window(account);
}

static int setup(void **state)
{
	vms = (vp_vms){0};
	two_vms(&vms);
	return 0;
}

static int teardown(void **state)
{
	vp_vms_deinit(&vms);
	return 0;
}

/* Any number of windows, one after another: nothing is lost, nothing is twice. */
static void test_windows_sum(void **state)
{
	struct sums whole = {0};
	struct vp_account account;

	vp_account_init(&account, &vms);
	take_all(&account);
	close_window(&account);
	add_up(&account, &whole);
	vp_account_deinit(&account);
	assert_int_equal(whole.wall, 2 * SECONDS * SECOND);
	assert_int_equal(whole.cost[0], 2 * SECONDS * 101);
	for (unsigned chosen = 0; chosen < 1 << (BORDERS - 2); chosen++) {
		struct sums sums = {0};
		uint64_t from = 0;
		for (unsigned i = 1; i < BORDERS; i++) {
			if (i + 1 < BORDERS && !(chosen & 1u << (i - 1)))
				continue;
			open_window(&account, from, borders[i]);
			take_all(&account);
			close_window(&account);
			add_up(&account, &sums);
			vp_account_deinit(&account);
			from = borders[i];
		}
		assert_memory_equal(&sums, &whole, sizeof(sums));
	}
}

/* In each window a vCPU's states sum to its wall time, exits' parts to their total. */
static void test_checks_hold(void **state)
{
	struct vp_account_checks checks;
	struct vp_account account;

	for (unsigned i = 0; i + 1 < BORDERS; i++) {
		open_window(&account, borders[i], borders[i + 1]);
		take_all(&account);
		close_window(&account);
		vp_account_check(&account, 0, 0, &checks);
		assert_true(checks.parts_sum);
		vp_vec_each (&account.times, times) {
			uint64_t sum = 0;
			for (size_t j = 0; j < VP_STATES; j++)
				sum += times->states[j];
			assert_int_equal(sum, times->wall);
		}
		vp_account_deinit(&account);
	}
}

/* The true times of the window, which the records do not tell, are within the bound; whole records
 * have none. */
static void test_bounds(void **state)
{
	struct vp_account account;

	open_window(&account, START + SECOND, START + 3 * SECOND);
	take_all(&account);
	close_window(&account);
	assert_int_equal(account.window.state_error, 0);
	assert_int_equal(account.window.theft_error, 0);
	assert_int_equal(account.window.exit_error, 0);
	assert_int_equal(account.times.at[0].states[VP_STATE_PREEMPTED], 200000000);
	vp_account_deinit(&account);

	/* Preempted in the first tenth only: 100 ms in truth, 20 ms by proportion. */
	open_window(&account, START, START + SECOND / 5);
	take_all(&account);
	close_window(&account);
	uint64_t preempted = account.times.at[0].states[VP_STATE_PREEMPTED];
	assert_int_equal(preempted, 20000000);
	assert_int_equal(account.times.at[0].wall, SECOND / 5);
	/* Kernel: 40 ms of 200 by proportion, and all of it in truth, if the guest ran after. */
	assert_int_equal(account.window.state_error, 199999993 - 39999998);
	/* Thief: 0 to 100 ms. */
	assert_int_equal(account.window.theft_error, 80000000);
	assert_true(100000000 - preempted <= account.window.state_error);
	/* The longest exit cannot be longer than its bucket. */
	assert_true(account.costs.at[0].max <= vp_bucket_begin(31));
	vp_account_deinit(&account);
}

static void take_span(struct vp_account *account, uint64_t begin, uint64_t end, uint32_t what,
		      uint32_t flags)
{
	TAKE(account, vcpu_span, .time = end, .vm = FIRST_VM, .tid = FIRST_VM + 1,
	     .state = (uint8_t)what, .flags = (uint16_t)flags, .ns = end - begin);
}

/* With single states the borders are exact, in the middle of a state, too. */
static void test_spans(void **state)
{
	const uint64_t ms = 1000000;
	struct sums whole = {0}, sums = {0};
	struct vp_account account;

	for (int half = 0; half < 3; half++) {
		const struct vp_window windows[] = {{START, START + 150 * ms},
						    {START + 150 * ms, START + SECOND},
						    {START, START + SECOND}};
		open_window(&account, windows[half].from, windows[half].to);
		account.by_spans = true;
		TAKE(&account, vcpu_account, .time = START + SECOND, .vm = FIRST_VM,
		     .tid = FIRST_VM + 1, .begin = START, .end = START + SECOND, .guest = 890 * ms,
		     .kernel = 6 * ms, .poll = 4 * ms, .preempted = 100 * ms);
		take_span(&account, START, START + 100 * ms, VP_STATE_PREEMPTED, 0);
		take_span(&account, START + 100 * ms, START + 110 * ms, VP_STATE_KERNEL, 0);
		take_span(&account, START + 106 * ms, START + 110 * ms, VP_STATE_POLL,
			  VP_STATE_MOVED);
		take_span(&account, START + 110 * ms, START + SECOND, VP_STATE_GUEST, 0);
		close_window(&account);
		const struct vp_account_times *times = &account.times.at[0];
		assert_int_equal(account.window.state_error, 0);
		if (half == 0) {
			assert_int_equal(times->states[VP_STATE_PREEMPTED], 100 * ms);
			assert_int_equal(times->states[VP_STATE_KERNEL], 6 * ms);
			assert_int_equal(times->states[VP_STATE_POLL], 4 * ms);
			assert_int_equal(times->states[VP_STATE_GUEST], 40 * ms);
		}
		add_up(&account, half < 2 ? &sums : &whole);
		vp_account_deinit(&account);
	}
	assert_memory_equal(&sums, &whole, sizeof(sums));

	/* Some are missing: the sums are kept, with their bound. */
	open_window(&account, START, START + 150 * ms);
	account.by_spans = true;
	TAKE(&account, vcpu_account, .time = START + SECOND, .vm = FIRST_VM, .tid = FIRST_VM + 1,
	     .begin = START, .end = START + SECOND, .guest = 900 * ms, .preempted = 100 * ms);
	take_span(&account, START, START + 100 * ms, VP_STATE_PREEMPTED, 0);
	close_window(&account);
	assert_int_equal(account.times.at[0].states[VP_STATE_PREEMPTED], 15 * ms);
	assert_true(account.window.state_error >= 85 * ms);
	vp_account_deinit(&account);
}

/* Events that are fewer than the record says: what they do not show may be anywhere. */
static void test_missing_events(void **state)
{
	const struct vp_window window = {START, START + SECOND / 2};
	struct vp_cut_key key = {.interval = START + SECOND,
				 .vm = FIRST_VM,
				 .cut = VP_CUT_THIEF,
				 .state = VP_STATE_PREEMPTED,
				 .type = VP_BY_TASK,
				 .number = 77};
	struct vp_account_cuts cuts;
	struct vp_account account;

	open_window(&account, window.from, window.to);
	vp_account_cuts_init(&cuts, &window);
	vp_account_cuts_add(&cuts, &key, START + SECOND / 2 - 30, START + SECOND / 2 + 30);
	account.window.cuts = &cuts;
	TAKE(&account, vcpu_account, .time = START + SECOND, .vm = FIRST_VM, .tid = FIRST_VM + 1,
	     .begin = START, .end = START + SECOND, .guest = SECOND - 100, .preempted = 100);
	TAKE(&account, thief, .time = START + SECOND, .vm = FIRST_VM, .kind = VP_BY_TASK,
	     .state = VP_STATE_PREEMPTED, .number = 77, .ns = 100, .count = 1, .comm = "make");
	close_window(&account);
	assert_int_equal(account.thefts.count, 1);
	assert_int_equal(account.thefts.at[0].preempted, 50);
	/* 30 to 70 ns. */
	assert_int_equal(account.window.theft_error, 20);
	vp_account_deinit(&account);
	vp_account_cuts_deinit(&cuts);
}

/* Intervals of the same vCPU number of two VMs, and of two vCPUs of one. */
static void test_intervals_of_vcpus(void **state)
{
	const struct vp_window window = {0, 100};
	struct vp_account_cuts cuts;

	vp_account_cuts_init(&cuts, &window);
	for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += 1000)
		for (uint32_t vcpu = 0; vcpu < 3; vcpu++)
			vp_account_cuts_add_interval(&cuts, vm, vcpu, vm + vcpu, vm + vcpu + 10);
	for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += 1000)
		for (uint32_t vcpu = 0; vcpu < 3; vcpu++) {
			const struct vp_cut_interval *interval =
			    vp_account_cuts_interval(&cuts, vm, vcpu, vm + vcpu + 10);
			assert_int_equal(interval->begin, vm + vcpu);
			assert_int_equal(interval->end, vm + vcpu + 10);
			assert_null(vp_account_cuts_interval(&cuts, vm, vcpu, vm + vcpu + 11));
		}
	assert_null(vp_account_cuts_interval(&cuts, FIRST_VM, 3, 0));
	vp_account_cuts_deinit(&cuts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_windows_sum, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_checks_hold, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_spans, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_missing_events, setup, teardown),
	    cmocka_unit_test(test_intervals_of_vcpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
