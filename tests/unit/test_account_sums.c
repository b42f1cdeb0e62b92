/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account's sums: which VM, vCPU, reason, thief and place a record is added to, and checks. */
#include "account_records.h"

#include <math.h>

enum { HLT = 0x78, NPF = 0x400, SECOND = 1000000000 };

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

static const struct vp_account_times *times_of(uint32_t vm, uint32_t vcpu)
{
	const struct vp_account_times *found = NULL;

	vp_account_each_of (&account, times, vm, times)
		if (times->vcpu == vcpu)
			found = times;
	assert_non_null(found);
	return found;
}

/* Every field of the vCPU's record is another number, times `by`. */
static void take_times(uint32_t vm, uint32_t vcpu, uint64_t begin, uint64_t by)
{
	TAKE(&account, vcpu_account, .vm = vm, .tid = vm + vcpu + 1, .vcpu = vcpu, .begin = begin,
	     .end = begin + 1023 * by, .guest = by, .kernel = 2 * by, .poll = 4 * by, .vmm = 8 * by,
	     .halted = 16 * by, .waiting = 32 * by, .waking = 64 * by, .preempted = 128 * by,
	     .throttled = 256 * by, .irq = 512 * by, .exits = 3 * by, .wakeups = 5 * by,
	     .preemptions = 7 * by, .polls = 9 * by, .poll_wasted = 11 * by);
	TAKE(&account, wake_bucket, .vm = vm, .vcpu = vcpu, .bucket = 2, .count = 13 * by,
	     .ns = 17 * by);
	TAKE(&account, wake_bucket, .vm = vm, .vcpu = vcpu, .bucket = VP_WAKE_BUCKETS, .count = by);
}

static void expect_times(uint32_t vm, uint32_t vcpu, uint64_t by)
{
	const struct vp_account_times *times = times_of(vm, vcpu);
	static const enum vp_state order[] = {
	    VP_STATE_GUEST,     VP_STATE_KERNEL,  VP_STATE_POLL,   VP_STATE_VMM,
	    VP_STATE_HALTED,    VP_STATE_WAITING, VP_STATE_WAKING, VP_STATE_PREEMPTED,
	    VP_STATE_THROTTLED, VP_STATE_IRQ};

	assert_int_equal(times->vm, vm);
	assert_int_equal(times->tid, 1000 * (vm + 1) + vcpu + 1);
	assert_int_equal(times->wall, 1023 * by);
	for (uint64_t i = 0; i < VP_ARRAY_SIZE(order); i++)
		assert_int_equal(times->states[order[i]], by << i);
	assert_int_equal(times->exits, 3 * by);
	assert_int_equal(times->wakeups, 5 * by);
	assert_int_equal(times->preemptions, 7 * by);
	assert_int_equal(times->polls, 9 * by);
	assert_int_equal(times->poll_wasted, 11 * by);
	assert_int_equal(times->wakes[2], 13 * by);
	assert_int_equal(times->wake_ns, 17 * by);
}

static void test_times(void **state)
{
	for (uint64_t round = 0; round < 2; round++)
		for (uint32_t vm = 0; vm < 2; vm++)
			for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
				take_times(1000 * (vm + 1), vcpu, 100 + round,
					   1 + vm + 10 * vcpu + 100 * round);
	assert_int_equal(account.times.count, 4);
	for (uint32_t vm = 0; vm < 2; vm++)
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
			expect_times(vm, vcpu, 2 * (1 + vm + 10 * vcpu) + 100);
	/* An interval that ends before it begins has no length. */
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .begin = 9, .end = 8, .tid = 1003);
	assert_int_equal(times_of(0, 0)->wall, 1023 * 102);
	assert_int_equal(times_of(0, 0)->tid, 1003);
}

/* By VM, over all intervals; also added to another account. */
static void test_counted_samples(void **state)
{
	struct vp_account joined;
	struct vp_map ids = {0};
	bool inserted;
	vp_vms both = {0};

	assert_false(account.has_counted_samples);
	for (uint64_t round = 1; round <= 2; round++)
		for (uint64_t vm = 1; vm <= 2; vm++)
			TAKE(&account, vm_samples, .vm = (uint32_t)(1000 * vm),
			     .guest_user = round * vm, .guest_kernel = 10 * round * vm,
			     .host = 100 * round * vm);
	assert_true(account.has_counted_samples);
	two_vms(&both);
	vp_account_init(&joined, &both);
	/* The first one has the second one's number there. */
	vp_map_insert(&ids, FIRST_VM, SECOND_VM, &inserted);
	vp_map_insert(&ids, SECOND_VM, FIRST_VM, &inserted);
	vp_account_add(&joined, &account, &ids);
	vp_account_add(&joined, &account, &ids);
	assert_true(joined.has_counted_samples);
	for (uint64_t vm = 0; vm < 2; vm++) {
		const uint64_t *of_one = account.of_vms.at[vm].counted;
		const uint64_t *of_other = joined.of_vms.at[1 - vm].counted;
		assert_int_equal(of_one[VP_SAMPLE_GUEST_USER], 3 * (vm + 1));
		assert_int_equal(of_one[VP_SAMPLE_GUEST_KERNEL], 30 * (vm + 1));
		assert_int_equal(of_one[VP_SAMPLE_HOST], 300 * (vm + 1));
		for (size_t mode = 0; mode < VP_SAMPLE_MODES; mode++)
			assert_int_equal(of_other[mode], 2 * of_one[mode]);
	}
	vp_account_deinit(&joined);
	vp_vms_deinit(&both);
	vp_map_deinit(&ids);
}

/* VMs that only records know are added; a process number that is used again is another VM. */
static void test_vms(void **state)
{
	const uint32_t again = FIRST_VM | 1 << VP_PID_BITS;

	assert_string_equal(vp_account_vm(&account, SECOND_VM)->name, "beta");
	take_times(again, 1, 5, 3);
	assert_int_equal(vms.count, 3);
	assert_int_equal(vms.at[2].pid, FIRST_VM);
	assert_int_equal(vms.at[2].nth, 1);
	assert_string_equal(vms.at[2].name, "pid-4195304");
	assert_int_equal(account.times.at[0].vm, 2);
	assert_ptr_equal(vp_account_vm(&account, again), &vms.at[2]);
	assert_ptr_equal(vp_account_vm(&account, FIRST_VM), &vms.at[0]);
	assert_null(vp_account_vm(&account, 3000));
	/* The list may have grown since the last record. */
	struct vp_vm late = vp_vm_of_id(3000);
	late.name = vp_strdup("late");
	vp_vec_push(&vms, late);
	assert_string_equal(vp_account_vm(&account, 3000)->name, "late");
}

static const struct vp_account_cost *cost_of(uint32_t vm, uint32_t vcpu, uint32_t reason)
{
	const struct vp_account_cost *found = NULL;

	vp_account_each_of (&account, costs, vm, cost)
		if (cost->vcpu == vcpu && cost->reason == reason)
			found = cost;
	assert_non_null(found);
	return found;
}

static void take_cost(uint32_t vm, uint32_t vcpu, uint32_t reason, uint64_t by, uint64_t max)
{
	TAKE(&account, exit_account, .vm = vm, .vcpu = vcpu, .reason = reason,
	     .vendor = VP_VENDOR_AMD, .count = 2 * by, .total = 63 * by, .max = max, .kernel = by,
	     .poll = 2 * by, .vmm = 4 * by, .stolen = 8 * by, .blocked = 16 * by,
	     .waking = 32 * by);
}

static void expect_cost(const struct vp_account_cost *cost, uint64_t by, uint64_t max)
{
	assert_int_equal(cost->vendor, VP_VENDOR_AMD);
	assert_int_equal(cost->count, 2 * by);
	assert_int_equal(cost->total, 63 * by);
	assert_int_equal(cost->max, max);
	assert_int_equal(cost->kernel, by);
	assert_int_equal(cost->poll, 2 * by);
	assert_int_equal(cost->vmm, 4 * by);
	assert_int_equal(cost->stolen, 8 * by);
	assert_int_equal(cost->blocked, 16 * by);
	assert_int_equal(cost->waking, 32 * by);
}

static void test_costs(void **state)
{
	take_cost(FIRST_VM, 0, HLT, 1, 50);
	take_cost(FIRST_VM, 0, HLT, 10, 40); /* the longest was before */
	take_cost(FIRST_VM, 1, HLT, 2, 7);
	take_cost(FIRST_VM, 0, NPF, 3, 8);
	take_cost(SECOND_VM, 0, HLT, 4, 9);
	take_cost(SECOND_VM, 0, HLT, 5, 90); /* … or is later */
	assert_int_equal(account.costs.count, 4);
	expect_cost(cost_of(0, 0, HLT), 11, 50);
	expect_cost(cost_of(0, 1, HLT), 2, 7);
	expect_cost(cost_of(0, 0, NPF), 3, 8);
	expect_cost(cost_of(1, 0, HLT), 9, 90);
	/* The same number is another reason with another vendor. */
	TAKE(&account, exit_account, .vm = FIRST_VM, .reason = NPF, .vendor = VP_VENDOR_INTEL,
	     .count = 1);
	assert_int_equal(account.costs.count, 5);
	expect_cost(&account.costs.at[2], 3, 8);
}

static void test_buckets(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		TAKE(&account, exit_bucket, .vm = SECOND_VM, .vcpu = 1, .reason = HLT,
		     .vendor = VP_VENDOR_AMD, .bucket = 5, .count = 3);
		TAKE(&account, exit_bucket, .vm = SECOND_VM, .vcpu = 1, .reason = HLT,
		     .vendor = VP_VENDOR_AMD, .bucket = VP_BUCKETS - 1, .count = 4);
	}
	TAKE(&account, exit_bucket, .vm = SECOND_VM, .vcpu = 0, .reason = HLT,
	     .vendor = VP_VENDOR_AMD, .bucket = 5, .count = 100);
	/* A bucket that there is not. */
	TAKE(&account, exit_bucket, .vm = SECOND_VM, .vcpu = 1, .reason = HLT,
	     .vendor = VP_VENDOR_AMD, .bucket = VP_BUCKETS, .count = 1000);
	assert_int_equal(cost_of(1, 1, HLT)->buckets[5], 6);
	assert_int_equal(cost_of(1, 1, HLT)->buckets[VP_BUCKETS - 1], 8);
	assert_int_equal(cost_of(1, 0, HLT)->buckets[5], 100);
	assert_int_equal(cost_of(1, 1, HLT)->next, 2);
	assert_int_equal(cost_of(1, 0, HLT)->next, 0);
}

/* Between the bounds of a bucket a straight line; not beyond the longest. */
static void test_quantiles(void **state)
{
	struct vp_account_cost cost = {.max = 100};

	cost.buckets[vp_bucket_of(32)] = 4; /* 32 to 39 */
	assert_int_equal(vp_bucket_begin(vp_bucket_of(32) + 1), 40);
	assert_int_equal(vp_account_quantile(&cost, 0), 32);
	assert_int_equal(vp_account_quantile(&cost, 0.25), 34);
	assert_int_equal(vp_account_quantile(&cost, 0.5), 36);
	assert_int_equal(vp_account_quantile(&cost, 1), 40);
	cost.buckets[vp_bucket_of(64)] = 12; /* 64 to 79 */
	assert_int_equal(vp_account_quantile(&cost, 0.25), 40);
	assert_int_equal(vp_account_quantile(&cost, 0.5), 64 + 16 / 3);
	assert_int_equal(vp_account_quantile(&cost, 1), 80);
	cost.max = 70;
	assert_int_equal(vp_account_quantile(&cost, 1), 70);
	assert_int_equal(vp_account_quantile(&cost, 0.5), 66);
}

static void test_cost_add(void **state)
{
	take_cost(FIRST_VM, 0, HLT, 1, 50);
	take_cost(FIRST_VM, 1, HLT, 10, 40);
	account.costs.at[0].buckets[0] = 1;
	account.costs.at[0].buckets[VP_BUCKETS - 1] = 2;
	account.costs.at[1].buckets[0] = 10;
	account.costs.at[1].buckets[VP_BUCKETS - 1] = 20;
	struct vp_account_cost sum = account.costs.at[0];
	vp_account_cost_add(&sum, &account.costs.at[1]);
	expect_cost(&sum, 11, 50);
	assert_int_equal(sum.buckets[0], 11);
	assert_int_equal(sum.buckets[VP_BUCKETS - 1], 22);
	sum = account.costs.at[1];
	vp_account_cost_add(&sum, &account.costs.at[0]);
	expect_cost(&sum, 11, 50);
}

static void take_theft(uint32_t vm, uint32_t vcpu, enum vp_state how, uint64_t ns)
{
	TAKE(&account, thief, .vm = vm, .vcpu = vcpu, .state = (uint16_t)how, .kind = VP_BY_TASK,
	     .number = 77, .thief_pid = 70, .flags = 1, .cgroup = 5, .ns = ns, .count = 2,
	     .comm = "sixteen letters!");
}

static void test_thefts(void **state)
{
	take_theft(FIRST_VM, 0, VP_STATE_PREEMPTED, 1);
	take_theft(FIRST_VM, 0, VP_STATE_WAKING, 10);
	take_theft(FIRST_VM, 0, VP_STATE_IRQ, 100);
	take_theft(FIRST_VM, 0, VP_STATE_PREEMPTED, 1000);
	take_theft(FIRST_VM, 0, VP_STATE_WAKING, 10000);
	take_theft(FIRST_VM, 0, VP_STATE_IRQ, 100000);
	take_theft(FIRST_VM, 1, VP_STATE_PREEMPTED, 5);
	take_theft(SECOND_VM, 1, VP_STATE_WAKING, 6);
	assert_int_equal(account.thefts.count, 3);
	const struct vp_account_theft *theft = &account.thefts.at[0];
	assert_int_equal(theft->preempted, 1001);
	assert_int_equal(theft->waking, 10010);
	assert_int_equal(theft->irq, 100100);
	assert_int_equal(theft->count, 12);
	assert_int_equal(theft->vm, 0);
	assert_int_equal(theft->kind, VP_BY_TASK);
	assert_int_equal(theft->id, 77);
	assert_int_equal(theft->owner, 70);
	assert_int_equal(theft->flags, 1);
	assert_int_equal(theft->cgroup, 5);
	assert_string_equal(theft->comm, "sixteen letters!");
	assert_int_equal(theft[1].vcpu, 1);
	assert_int_equal(theft[1].preempted, 5);
	assert_int_equal(theft[2].vm, 1);
	assert_int_equal(theft[2].waking, 6);
}

/* Thieves that differ in one thing are different ones. */
static void test_thieves_told_apart(void **state)
{
	const struct vp_thief thief = {
	    .vm = FIRST_VM, .kind = VP_BY_TASK, .number = 7, .thief_pid = 6, .comm = "a"};
	struct vp_thief others[] = {thief, thief, thief, thief, thief, thief, thief, thief};

	others[1].cgroup = 1;
	others[2].vcpu = 1;
	others[3].kind = VP_BY_DEVICE;
	others[4].number = 8;
	others[5].thief_pid = 5;
	others[6].flags = 1;
	others[7].comm[0] = 'b';
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
			take_record(&account, VP_ID_thief, &others[i]);
	assert_int_equal(account.thefts.count, VP_ARRAY_SIZE(others));
}

/* A place whose address is not known (its VM was not asked for) is not one of address 0. */
static void test_places(void **state)
{
	const struct vp_exit_site site = {.vm = FIRST_VM,
					  .reason = NPF,
					  .vendor = VP_VENDOR_AMD,
					  .flags = VP_SITE_KNOWN,
					  .ip = 0x1000,
					  .as_root = 0x5000,
					  .count = 3,
					  .ns = 30,
					  .last = 200};
	struct vp_exit_site sites[] = {site, site, site, site, site, site, site};

	sites[1].flags = 0;
	sites[2].ip = 0x2000;
	sites[3].as_root = 0x6000;
	sites[4].vm = SECOND_VM;
	sites[5].reason = HLT;
	sites[6].vendor = VP_VENDOR_INTEL;
	for (size_t i = 0; i < VP_ARRAY_SIZE(sites); i++)
		take_record(&account, VP_ID_exit_site, &sites[i]);
	sites[0].count = 4;
	sites[0].ns = 40;
	sites[0].last = 100; /* not the last one */
	take_record(&account, VP_ID_exit_site, &sites[0]);
	sites[2].last = 300;
	take_record(&account, VP_ID_exit_site, &sites[2]);
	assert_int_equal(account.sites.count, VP_ARRAY_SIZE(sites));
	for (size_t i = 0; i < VP_ARRAY_SIZE(sites); i++) {
		const struct vp_account_exit_site *row = &account.sites.at[i];
		assert_int_equal(row->known, i != 1);
		assert_int_equal(row->vm, i == 4);
		assert_int_equal(row->reason, i == 5 ? HLT : NPF);
		assert_int_equal(row->vendor, i == 6 ? VP_VENDOR_INTEL : VP_VENDOR_AMD);
		assert_int_equal(row->ip, i == 2 ? 0x2000 : 0x1000);
		assert_int_equal(row->as_root, i == 3 ? 0x6000 : 0x5000);
		assert_int_equal(row->count, i == 0 ? 7 : i == 2 ? 6 : 3);
		assert_int_equal(row->ns, i == 0 ? 70 : i == 2 ? 60 : 30);
		assert_int_equal(row->last, i == 2 ? 300 : 200);
		assert_int_equal(row->detail_kind, VP_DETAIL_NONE);
		assert_int_equal(row->detail, 0);
		assert_true(row->address == VP_NO_ADDRESS);
	}
}

static void test_details(void **state)
{
	for (uint32_t i = 0; i < 4; i++)
		TAKE(&account, exit_site_detail, .vm = SECOND_VM, .flags = VP_SITE_KNOWN,
		     .count = 1 + i, .detail_kind = VP_DETAIL_PORT_IN + i / 2,
		     .detail = 0x70 + i % 2);
	for (uint64_t i = 0; i < 2; i++)
		TAKE(&account, exit_site_address, .vm = SECOND_VM, .flags = VP_SITE_KNOWN,
		     .count = 10 + i, .detail_kind = VP_DETAIL_MMIO_READ, .detail = 9,
		     .address = 0x1000 * i);
	assert_int_equal(account.sites.count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		const struct vp_account_exit_site *row = &account.sites.at[i];
		assert_int_equal(row->vm, 1);
		assert_int_equal(row->detail_kind,
				 i < 4 ? VP_DETAIL_PORT_IN + i / 2 : VP_DETAIL_MMIO_READ);
		assert_int_equal(row->detail, i < 4 ? 0x70 + i % 2 : 9);
		assert_true(row->address == (i < 4 ? VP_NO_ADDRESS : 0x1000 * (i - 4ULL)));
		assert_int_equal(row->count, i < 4 ? 1 + i : 6 + i);
		assert_int_equal(vp_account_exit_site_is_device(row), i > 3);
	}
	account.sites.at[0].detail_kind = VP_DETAIL_MMIO_WRITE;
	assert_true(vp_account_exit_site_is_device(&account.sites.at[0]));
	account.sites.at[0].detail_kind = VP_DETAIL_MEMORY_WRITE;
	assert_false(vp_account_exit_site_is_device(&account.sites.at[0]));
}

static void test_samples(void **state)
{
	for (int i = 0; i < 3; i++)
		TAKE(&account, guest_sample, .vm = SECOND_VM, .vcpu = 1, .tid = 2002,
		     .mode = i ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL);
	TAKE(&account, guest_sample, .vm = FIRST_VM, .vcpu = 1, .mode = VP_MODE_GUEST_KERNEL);
	TAKE(&account, vcpu_sample, .vm = FIRST_VM, .vcpu = 1); /* nothing to the account */
	assert_int_equal(times_of(1, 1)->guest_samples, 3);
	assert_int_equal(times_of(1, 1)->user_samples, 2);
	assert_int_equal(times_of(0, 1)->guest_samples, 1);
	assert_int_equal(times_of(0, 1)->user_samples, 0);
}

static void expect_counts(size_t times, size_t costs, size_t thefts, size_t n_sites)
{
	assert_int_equal(account.times.count, times);
	assert_int_equal(account.costs.count, costs);
	assert_int_equal(account.thefts.count, thefts);
	assert_int_equal(account.sites.count, n_sites);
	assert_int_equal(account.lost.vcpus, 0);
}

/* Each kind of record is one thing only. */
static void test_kinds(void **state)
{
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .end = 1);
	expect_counts(1, 0, 0, 0);
	TAKE(&account, exit_account, .vm = FIRST_VM, .count = 1ULL << 32 | 5);
	expect_counts(1, 1, 0, 0);
	assert_int_equal(account.costs.at[0].buckets[5], 0);
	TAKE(&account, exit_bucket, .vm = FIRST_VM);
	expect_counts(1, 1, 0, 0);
	TAKE(&account, thief, .vm = FIRST_VM);
	expect_counts(1, 1, 1, 0);
	TAKE(&account, exit_site, .vm = FIRST_VM);
	expect_counts(1, 1, 1, 1);
	TAKE(&account, exit_site_detail, .vm = FIRST_VM, .detail = 1);
	expect_counts(1, 1, 1, 2);
	TAKE(&account, exit_site_address, .vm = FIRST_VM, .detail = 1, .ip = 7, .reason = 9);
	expect_counts(1, 1, 1, 3);
	TAKE(&account, guest_sample, .vm = FIRST_VM);
	expect_counts(1, 1, 1, 3);
	TAKE(&account, account_loss, .sites = 1, .vcpus = 0);
	assert_int_equal(account.times.at[0].guest_samples, 1);
}

/* The last record of what was lost has the sums since the recording's start. */
static void test_losses(void **state)
{
	struct vp_account_checks checks;

	TAKE(&account, account_loss, .vcpus = 1, .thieves = 2, .sites = 3);
	TAKE(&account, account_loss, .vcpus = 4, .thieves = 5, .sites = 6);
	assert_int_equal(account.lost.vcpus, 4);
	assert_int_equal(account.lost.thieves, 5);
	assert_int_equal(account.lost.sites, 6);
	vp_account_check(&account, 0, 0, &checks);
	assert_int_equal(checks.lost_events, 4);
	assert_false(checks.all_counted);
}

/* The worst vCPU decides, whichever it is; a tenth of a percent is allowed. */
static void test_check_of_states(void **state)
{
	struct vp_account_checks checks;

	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = vcpu, .end = 1000000,
		     .guest = 1000000, .exits = 5);
	vp_account_check(&account, 0, 0, &checks);
	assert_true(checks.closes && checks.worst_gap == 0);
	assert_int_equal(checks.exits, 10);
	account.times.at[0].states[VP_STATE_GUEST] += 1000;
	vp_account_check(&account, 0, 0, &checks);
	assert_true(checks.closes && fabs(checks.worst_gap - 0.1) < 1e-9);
	account.times.at[0].states[VP_STATE_GUEST] = 1000000;
	account.times.at[1].states[VP_STATE_IRQ] = 1100;
	vp_account_check(&account, 0, 0, &checks);
	assert_true(!checks.closes && fabs(checks.worst_gap - 0.11) < 1e-9);
	/* One that was only sampled has no states. */
	account.times.at[1].states[VP_STATE_IRQ] = 0;
	TAKE(&account, guest_sample, .vm = SECOND_VM);
	vp_account_check(&account, 0, 0, &checks);
	assert_true(checks.closes);
}

static void test_check_of_exits(void **state)
{
	struct vp_account_checks checks;

	for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += 1000) {
		TAKE(&account, vcpu_account, .vm = vm, .end = 100, .guest = 100, .exits = 50000);
		TAKE(&account, exit_account, .vm = vm, .count = 50000, .total = 63, .kernel = 1,
		     .poll = 2, .vmm = 4, .stolen = 8, .blocked = 16, .waking = 32);
	}
	vp_account_check(&account, 0, 0, &checks);
	assert_int_equal(checks.exits_by_reason, 100000);
	assert_int_equal(checks.exit_ns, 126);
	assert_int_equal(checks.part_ns, 126);
	assert_true(checks.exits_agree && checks.parts_sum);
	/* A tenth of a percent of the larger one, and two. */
	account.costs.at[1].count += 102;
	vp_account_check(&account, 0, 0, &checks);
	assert_true(checks.exits_agree);
	account.costs.at[1].count += 1;
	vp_account_check(&account, 0, 0, &checks);
	assert_false(checks.exits_agree);
	account.costs.at[1].count -= 1 + 102 + 102;
	vp_account_check(&account, 0, 0, &checks);
	assert_true(checks.exits_agree);
	account.costs.at[1].count -= 1;
	vp_account_check(&account, 0, 0, &checks);
	assert_false(checks.exits_agree);
	account.costs.at[0].waking++;
	vp_account_check(&account, 0, 0, &checks);
	assert_false(checks.parts_sum);
}

static void sample(uint32_t vm, uint32_t vcpu, uint64_t count)
{
	while (count--)
		TAKE(&account, guest_sample, .vm = vm, .vcpu = vcpu);
}

/* A second of samples each millisecond: what is expected of them is between the exact time in the
 * guest, and that with the interrupts' and the kernel's; and chance is allowed for. */
static void test_check_of_samples(void **state)
{
	const double error = 3 * sqrt(0.5 * 0.5 / 1000) + 3.0 / 1000;
	struct vp_account_checks checks;

	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = vcpu, .end = SECOND,
		     .guest = SECOND / 2, .kernel = SECOND / 10, .irq = SECOND / 20,
		     .halted = SECOND / 20 * 7);
	sample(SECOND_VM, 0, 500);
	sample(SECOND_VM, 1, 500 - 50); /* 0.0504 is allowed */
	vp_account_check(&account, SECOND / 1000, 0, &checks);
	assert_true(checks.sampled && checks.samples_agree);
	assert_true(fabs(checks.worst_sample - 5) < 1e-9);
	assert_true(fabs(checks.sample_error - 100 * error) < 1e-9);
	account.times.at[1].guest_samples -= 1;
	vp_account_check(&account, SECOND / 1000, 0, &checks);
	assert_false(checks.samples_agree);
	vp_account_check(&account, SECOND / 1000, 0.002, &checks);
	assert_true(checks.samples_agree);
	assert_true(fabs(checks.sample_error - 100 * error - 0.2) < 1e-9);
	account.times.at[1].guest_samples = 650 + 50;
	vp_account_check(&account, SECOND / 1000, 0, &checks);
	assert_true(checks.samples_agree && fabs(checks.worst_sample - 5) < 1e-9);
	account.times.at[1].guest_samples += 1;
	vp_account_check(&account, SECOND / 1000, 0, &checks);
	assert_false(checks.samples_agree);
	/* The first is the worst; where nothing is off, the bound is that of the last. */
	account.times.at[1].guest_samples = 500;
	account.times.at[0].guest_samples = 400;
	vp_account_check(&account, SECOND / 1000, 0, &checks);
	assert_true(!checks.samples_agree && fabs(checks.worst_sample - 10) < 1e-9);
	account.times.at[0].guest_samples = 500;
	vp_account_check(&account, SECOND / 1000, 0, &checks);
	assert_true(checks.worst_sample == 0 && fabs(checks.sample_error - 100 * error) < 1e-9);
	/* Shorter than a period, there is nothing to compare. */
	vp_account_check(&account, SECOND, 0, &checks);
	assert_false(checks.sampled);
	vp_account_check(&account, SECOND - 1, 0, &checks);
	assert_true(checks.sampled);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_times),
	    TEST(test_vms),
	    TEST(test_costs),
	    TEST(test_buckets),
	    TEST(test_quantiles),
	    TEST(test_cost_add),
	    TEST(test_thefts),
	    TEST(test_thieves_told_apart),
	    TEST(test_places),
	    TEST(test_details),
	    TEST(test_samples),
	    TEST(test_counted_samples),
	    TEST(test_losses),
	    TEST(test_kinds),
	    TEST(test_check_of_states),
	    TEST(test_check_of_exits),
	    TEST(test_check_of_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
