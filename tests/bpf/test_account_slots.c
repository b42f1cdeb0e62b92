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
	for (uint32_t i = 0; i < rig->slots; i++) {
		used += rig->vcpus[i].begin != 0;
		assert_int_equal(rig->vcpus[i].pid, getpid());
		rig_expect_whole(&rig->vcpus[i]);
	}
	assert_int_equal(used, 3);
	rig_close(rig);
}

/* Other threads, whose ids have the same low bits, have so many entries. */
static void fill(struct rig *rig, uint32_t entries)
{
	int map = bpf_map__fd(rig->programs->maps.slot_of_tid);

	for (uint32_t i = 1; i <= entries; i++) {
		uint32_t tid = (uint32_t)vp_own_tid() + i * VP_TID_BITS, slot = i;
		assert_int_equal(bpf_map_update_elem(map, &tid, &slot, BPF_ANY), 0);
	}
}

static void test_ids_are_alike(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 8);

	fill(rig, 7);
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

/* A thread that cannot be noted has no account, and takes nobody else's place. */
static void test_no_room_is_left(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, 4);
	int slots = bpf_map__fd(rig->programs->maps.slots);
	uint32_t slot, left = 0;

	fill(rig, rig->slots);
	for (int i = 0; i < 10; i++)
		rig_entry(rig);
	assert_null(rig_vcpu(rig, vp_own_tid()));
	assert_int_equal(rig->programs->bss->lost.vcpus, 10);
	while (!bpf_map_lookup_and_delete_elem(slots, NULL, &slot))
		left++;
	assert_int_equal(left, rig->slots);
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
	    cmocka_unit_test(test_ids_are_alike),
	    cmocka_unit_test(test_no_room_is_left),
	    cmocka_unit_test(test_counts_only_when_told),
	};

	if (!vp_kernel_takes_programs("the account's places"))
		return VP_SKIPPED;
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
