/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Overcommit: which thefts could not be avoided, and what is said of each VM. */
#include "account_records.h"

#include <math.h>

enum { SECOND = 1000000000, VMS = 3 };

static vp_vms vms;
static struct vp_account account;
static uint64_t now;

/* VMs of two vCPUs each, of which vCPU 1 may use all pCPUs. */
static void begin(uint32_t pcpus, const char *const lists[VMS])
{
	vms = (vp_vms){0};
	for (uint32_t i = 0; i < VMS; i++) {
		struct vp_vm vm = vp_vm_of_id(1000 * (i + 1));
		vm.name = vp_format("vm%u", i);
		vp_vm_vcpu(&vm, 0)->tid = vm.pid + 1;
		vp_vm_vcpu(&vm, 0)->pcpus = lists[i] ? vp_strdup(lists[i]) : NULL;
		vp_vm_vcpu(&vm, 1)->tid = vm.pid + 2;
		vp_vec_push(&vms, vm);
	}
	vp_account_init(&account, &vms);
	account.overcommit.pcpus = pcpus;
	now = SECOND;
}

static void end(void)
{
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

/* The second's account of a vCPU that wanted to run for so long; it got half of that. */
static void want(uint32_t vm, uint32_t vcpu, uint64_t ns)
{
	TAKE(&account, vcpu_account, .time = now, .vm = 1000 * (vm + 1), .vcpu = vcpu,
	     .begin = now - SECOND, .end = now, .guest = ns / 2, .preempted = ns - ns / 2,
	     .halted = SECOND - ns);
}

static void take(uint32_t vm, uint32_t vcpu, uint64_t ns)
{
	TAKE(&account, thief, .time = now, .vm = 1000 * (vm + 1), .vcpu = vcpu,
	     .state = VP_STATE_PREEMPTED, .kind = VP_BY_VCPU, .thief_pid = 9, .ns = ns, .count = 1);
}

static uint64_t crowded_of(uint32_t vm, uint32_t vcpu)
{
	uint64_t overcommitted = UINT64_MAX;

	vp_account_each_of (&account, thefts, vm, theft)
		if (theft->vcpu == vcpu)
			overcommitted = theft->overcommitted;
	return overcommitted;
}

static const char *const anywhere[VMS] = {NULL, NULL, NULL};

static void expect_crowd(uint32_t vm, uint32_t pcpus, double wanted, uint64_t ns)
{
	struct vp_overcommit_of_vm set;

	assert_true(vp_overcommit_of_vm(&account.overcommit, &vms.at[vm], &set));
	assert_int_equal(set.pcpus, pcpus);
	assert_true(fabs(set.wanted - wanted) < 1e-6);
	assert_int_equal(set.ns, ns);
}

static void expect_no_crowd(uint32_t vm)
{
	struct vp_overcommit_of_vm set;

	assert_false(vp_overcommit_of_vm(&account.overcommit, &vms.at[vm], &set));
}

/* What counts as wanted: all that the vCPU ran or waited for, but polling and sleep. */
static void test_wanted(void **state)
{
	begin(1, anywhere);
	TAKE(&account, vcpu_account, .time = now, .vm = FIRST_VM, .begin = 0, .end = SECOND,
	     .guest = 100000000, .kernel = 200000000, .vmm = 300000000, .irq = 400000000,
	     .poll = 1);
	TAKE(&account, vcpu_account, .time = now, .vm = SECOND_VM, .begin = 0, .end = SECOND,
	     .waking = 250000000, .preempted = 150000000, .halted = 1, .waiting = 2,
	     .throttled = 3);
	take(1, 0, 400000000);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(1, 0), 400000000);
	expect_crowd(0, 1, 1.4, SECOND);
	end();
}

/* From a twentieth more than there is on, it is told; shares of thefts are always worked out. */
static void test_notable(void **state)
{
	begin(2, anywhere);
	for (uint32_t vm = 0; vm < 2; vm++)
		want(vm, 0, SECOND);
	want(2, 1, SECOND / 10 - 1);
	take(0, 0, SECOND / 5);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), SECOND / 10 - 1);
	expect_no_crowd(0);
	end();
	begin(2, anywhere);
	for (uint32_t vm = 0; vm < 2; vm++)
		want(vm, 0, SECOND);
	want(2, 1, SECOND / 10);
	take(0, 0, SECOND / 5);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), SECOND / 10);
	for (uint32_t vm = 0; vm < VMS; vm++)
		expect_crowd(vm, 2, 2.1, SECOND);
	end();
}

/* Below half of the pCPUs more than there are (3 want 2 for a moment): it is crowded. */
static void test_each_interval(void **state)
{
	begin(2, anywhere);
	for (uint32_t vm = 0; vm < VMS; vm++)
		want(vm, 0, SECOND);
	take(0, 0, SECOND / 2);
	take(1, 0, SECOND / 2);
	take(2, 0, SECOND);
	now += SECOND; /* the next one is not crowded */
	want(0, 0, SECOND);
	take(0, 0, SECOND / 4);
	now += SECOND;
	for (uint32_t vm = 0; vm < VMS; vm++)
		want(vm, 0, SECOND - 200000000);
	take(1, 0, SECOND / 5);
	vp_account_settle(&account);
	/* 1 s of 2 s that were taken, then nothing, then all of a fifth. */
	assert_int_equal(crowded_of(0, 0), SECOND / 4);
	assert_int_equal(crowded_of(1, 0), SECOND / 4 + SECOND / 5);
	assert_int_equal(crowded_of(2, 0), SECOND / 2);
	expect_crowd(2, 2, (3 + 2.4) / 2, 2ULL * SECOND);
	end();
}

/* vCPU 0 of two VMs may use pCPU 1 only; the third's is alone on the others. */
static void test_crowds(void **state)
{
	static const char *const lists[VMS] = {"1", "1", "2-3"};

	begin(4, lists);
	for (uint32_t vm = 0; vm < VMS; vm++)
		want(vm, 0, SECOND);
	take(0, 0, SECOND / 2);
	take(1, 0, SECOND / 2);
	take(2, 0, SECOND / 2);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), SECOND / 2);
	assert_int_equal(crowded_of(1, 0), SECOND / 2);
	assert_int_equal(crowded_of(2, 0), 0);
	expect_crowd(0, 1, 2, SECOND);
	expect_crowd(1, 1, 2, SECOND);
	expect_no_crowd(2);
	end();
}

/* One crowd within another: what the inner one has no pCPU for is not wanted of the outer one
 * again. */
static void test_nested_crowds(void **state)
{
	static const char *const lists[VMS] = {"0", "0", "0-1"};

	begin(3, lists);
	for (uint32_t vm = 0; vm < VMS; vm++)
		want(vm, 0, SECOND);
	want(0, 1, SECOND); /* anywhere: 4 on 3 pCPUs, of which one is the inner crowd's */
	for (uint32_t vm = 0; vm < VMS; vm++)
		take(vm, 0, SECOND / 2);
	take(0, 1, SECOND / 2);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), SECOND / 2);
	assert_int_equal(crowded_of(1, 0), SECOND / 2);
	assert_int_equal(crowded_of(2, 0), 0);
	assert_int_equal(crowded_of(0, 1), 0);
	expect_crowd(0, 1, 2, SECOND);
	expect_no_crowd(2);
	end();
}

/* What the inner crowd explains of a theft is not divided again in the outer one. */
static void test_shares(void **state)
{
	static const char *const lists[VMS] = {"0", "0", NULL};

	begin(2, lists);
	want(0, 0, SECOND);
	want(1, 0, SECOND / 5);
	want(2, 0, SECOND);
	want(2, 1, SECOND / 5 * 2);
	take(0, 0, SECOND / 5); /* of 0.4 s a half, then of 0.2 + 0.6 s another half */
	take(1, 0, SECOND / 5);
	take(2, 0, SECOND / 10 * 3);
	take(2, 1, SECOND / 10 * 3);
	vp_account_settle(&account);
	for (uint32_t vm = 0; vm < VMS; vm++)
		assert_in_range(crowded_of(vm, 0), SECOND / 20 * 3 - 1, SECOND / 20 * 3 + 1);
	assert_in_range(crowded_of(2, 1), SECOND / 20 * 3 - 1, SECOND / 20 * 3 + 1);
	expect_crowd(2, 2, 2.6, SECOND);
	end();
}

/* A crowd that came first, and one that may use a part of its pCPUs, in either order. */
static void test_order_of_crowds(void **state)
{
	static const char *const lists[][VMS] = {
	    {"0-1", "1", "1"}, {"1", "0-1", "1"}, {"1", "1", "0-1"}};

	for (uint32_t wide = 0; wide < VMS; wide++) {
		begin(8, lists[wide]);
		for (uint32_t vm = 0; vm < VMS; vm++) {
			want(vm, 0, SECOND);
			take(vm, 0, SECOND / 2);
		}
		vp_account_settle(&account);
		for (uint32_t vm = 0; vm < VMS; vm++)
			assert_int_equal(crowded_of(vm, 0), vm == wide ? 0 : SECOND / 2);
		end();
	}
}

/* Lists that are none, and one of all pCPUs, stand for all. */
static void test_lists(void **state)
{
	static const struct {
		const char *list;
		uint32_t pcpus; /* 0: all */
	} lists[] = {{"0", 1},       {"3,5", 2},   {"0-2,4", 4},   {"0,2-3,6-7", 5}, {"0-6", 7},
		     {"0-7", 0},     {"", 0},      {"x", 0},       {"3-1", 0},       {"1-", 0},
		     {"1;2", 0},     {"2,1", 0},   {"1-3,3", 0},   {"65535", 1},     {"65536", 0},
		     {"1-65536", 0}, {"63-64", 2}, {"0-62,64", 0}, {"1,", 1}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(lists); i++) {
		const char *const of_vms[VMS] = {lists[i].list, NULL, NULL};
		begin(8, of_vms);
		want(0, 0, SECOND);
		const struct vp_overcommit_set *set = &account.overcommit.sets.at[0];
		assert_int_equal(set->n_pcpus, lists[i].pcpus ? lists[i].pcpus : 8);
		assert_int_equal(set->pcpus != NULL, lists[i].pcpus != 0);
		end();
	}
}

/* pCPUs beyond the first 64, and lists that overlap but are not within each other. */
static void test_within(void **state)
{
	static const char *const lists[VMS] = {"66,69", "60-70", "69-71"};

	begin(128, lists);
	for (uint32_t vm = 0; vm < VMS; vm++)
		want(vm, 0, SECOND);
	want(1, 1, SECOND);
	const struct vp_overcommit_set *sets = account.overcommit.sets.at;
	assert_int_equal(account.overcommit.sets.count, 4);
	assert_int_equal(sets[0].within.count, 1);
	assert_int_equal(sets[1].within.count, 2);
	assert_int_equal(sets[1].within.at[0], 0);
	assert_int_equal(sets[1].within.at[1], 1);
	assert_int_equal(sets[2].within.count, 1);
	assert_int_equal(sets[3].within.count, 4);
	static const uint32_t by_size[] = {0, 2, 1, 3};
	assert_memory_equal(account.overcommit.by_size.at, by_size, sizeof(by_size));
	end();
}

/* Where the number of pCPUs is not known, and of domains, nothing is worked out. */
static void test_not_known(void **state)
{
	begin(0, anywhere);
	want(0, 0, SECOND);
	want(1, 0, SECOND);
	take(0, 0, SECOND / 2);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), 0);
	end();
	begin(1, anywhere);
	vms.at[0].has_domain = true;
	want(0, 0, SECOND);
	want(1, 0, SECOND);
	take(0, 0, SECOND / 2);
	take(1, 0, SECOND / 2);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), 0);
	assert_int_equal(crowded_of(1, 0), 0); /* it is alone */
	end();
	/* Domains whose affinity is not known: recordings of before. */
	begin(1, anywhere);
	vms.at[0].has_domain = true;
	want(1, 0, SECOND);
	want(2, 0, SECOND / 2);
	for (uint32_t vm = 0; vm < VMS; vm++)
		take(vm, 0, SECOND / 2);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), 0);
	assert_int_equal(crowded_of(1, 0), SECOND / 4);
	assert_int_equal(crowded_of(2, 0), SECOND / 4);
	end();
	/* More is wanted, but no vCPU took anything. */
	begin(1, anywhere);
	want(0, 0, SECOND);
	want(1, 0, SECOND);
	vp_account_settle(&account);
	expect_no_crowd(0);
	end();
}

/* Domains whose affinity is known count as VMs do. */
static void test_domains(void **state)
{
	static const char *const lists[VMS] = {"1", "1", "0-1"};

	begin(2, lists);
	vp_vec_each (&vms, vm)
		vm->has_domain = true;
	want(0, 0, SECOND);
	want(1, 0, SECOND);
	want(2, 0, SECOND / 2);
	take(0, 0, SECOND / 2);
	take(1, 0, SECOND / 2);
	take(2, 0, SECOND / 4);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(0, 0), SECOND / 2);
	assert_int_equal(crowded_of(1, 0), SECOND / 2);
	assert_int_equal(crowded_of(2, 0), 0);
	expect_crowd(0, 1, 2, SECOND);
	end();
}

/* Intervals do not begin and end at the same time: the longest counts. Others than vCPUs take
 * nothing that more pCPUs would have saved. */
static void test_length(void **state)
{
	begin(1, anywhere);
	TAKE(&account, vcpu_account, .time = now, .vm = FIRST_VM, .begin = 400, .end = 1200,
	     .guest = 800);
	TAKE(&account, vcpu_account, .time = now, .vm = SECOND_VM, .begin = 300, .end = 1300,
	     .preempted = 500);
	TAKE(&account, vcpu_account, .time = now, .vm = SECOND_VM, .vcpu = 1, .begin = 350,
	     .end = 1100, .preempted = 100);
	take(1, 0, 500);
	TAKE(&account, thief, .time = now, .vm = FIRST_VM, .state = VP_STATE_PREEMPTED,
	     .kind = VP_BY_TASK, .ns = 500, .count = 1);
	vp_account_settle(&account);
	assert_int_equal(crowded_of(1, 0), 400);
	assert_int_equal(crowded_of(0, 0), 0);
	expect_crowd(0, 1, 1.4, 1000);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_wanted),        cmocka_unit_test(test_notable),
	    cmocka_unit_test(test_each_interval), cmocka_unit_test(test_crowds),
	    cmocka_unit_test(test_nested_crowds), cmocka_unit_test(test_order_of_crowds),
	    cmocka_unit_test(test_lists),         cmocka_unit_test(test_within),
	    cmocka_unit_test(test_not_known),     cmocka_unit_test(test_domains),
	    cmocka_unit_test(test_length),        cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
