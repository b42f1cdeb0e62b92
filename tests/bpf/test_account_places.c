/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which threads have a place in the account, and what becomes of those that find none. */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "account_rig.h"

enum { ABORT = 0x24 };

static void *enter(void *rig)
{
	vp_run(((struct rig *)rig)->programs->progs.note_entry, 0, 0, 0);
	return NULL;
}

static void enter_in_thread(struct rig *rig)
{
	pthread_t thread;

	rig_forget_pcpus(rig);
	assert_int_equal(pthread_create(&thread, NULL, enter, rig), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_more_vcpus_than_places(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 3);
	uint32_t used = 0;

	for (int i = 0; i < 5; i++)
		enter_in_thread(rig);
	assert_int_equal(rig->programs->bss->lost.vcpus, 2);
	for (uint32_t i = 0; i < rig->places; i++) {
		used += rig->vcpus[i].begin != 0;
		assert_int_equal(rig->vcpus[i].pid, getpid());
		rig_expect_whole(&rig->vcpus[i]);
	}
	assert_int_equal(used, 3);
	rig_close(rig);
}

/* As far as threads with the same low bits have its slots. */
static void collide(struct rig *rig, uint32_t slots)
{
	uint32_t other = rig->places;

	rig->vcpus[other - 1].tid = UINT32_MAX;
	for (uint32_t i = 0; i < slots; i++)
		rig->programs->bss->place_of_tid[(vp_own_tid() + i) % VP_TID_SLOTS] =
		    (uint16_t)other;
}

static void test_slots_collide(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 4);

	collide(rig, VP_TID_PROBES - 1);
	for (int i = 0; i < 3; i++) {
		rig_forget_pcpus(rig);
		rig_entry(rig);
		rig_exit(rig, ABORT, 0x1000);
	}
	struct vp_account_vcpu *vcpu = rig_vcpu(rig, vp_own_tid());
	assert_non_null(vcpu);
	rig_expect_whole(vcpu);
	assert_int_equal(rig->programs->bss->lost.vcpus, 0);
	rig_close(rig);
}

/* A thread without a slot has no account, and takes nobody else's place. */
static void test_no_slot_is_left(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 4);
	int places = bpf_map__fd(rig->programs->maps.places);
	uint32_t place, left = 0;

	collide(rig, VP_TID_PROBES);
	for (int i = 0; i < 10; i++)
		rig_entry(rig);
	assert_null(rig_vcpu(rig, vp_own_tid()));
	assert_int_equal(rig->programs->bss->lost.vcpus, 10);
	while (!bpf_map_lookup_and_delete_elem(places, NULL, &place))
		left++;
	assert_int_equal(left, rig->places);
	rig_close(rig);
}

/* A vCPU that is gone gives its slot away, not its account. */
static void test_slot_of_one_that_is_gone(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 4);

	collide(rig, VP_TID_PROBES);
	rig->vcpus[rig->places - 1].state = VP_STATE_GONE;
	rig_entry(rig);
	assert_non_null(rig_vcpu(rig, vp_own_tid()));
	assert_int_equal(rig->programs->bss->lost.vcpus, 0);
	rig_close(rig);
}

static void test_counts_only_when_told(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 1);

	rig->programs->bss->enabled = 0;
	rig_exit(rig, ABORT, 0x1000);
	rig_entry(rig);
	assert_null(rig_vcpu(rig, vp_own_tid()));
	assert_int_equal(rig->programs->bss->lost.vcpus, 0);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_more_vcpus_than_places),
	    cmocka_unit_test(test_slots_collide),
	    cmocka_unit_test(test_no_slot_is_left),
	    cmocka_unit_test(test_slot_of_one_that_is_gone),
	    cmocka_unit_test(test_counts_only_when_told),
	};

	if (!vp_kernel_takes_programs("the account's places"))
		return VP_SKIPPED;
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
