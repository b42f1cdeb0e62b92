/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thieves in the account's records: who took vCPUs' time, named for as long as a recorder runs. */
#include "account_source.h"

static uint64_t recorded_ns, recorded_count, records; /* of thieves, in all */

/* As the program in the kernel does: the entry's counts grow, or a new one is made if there is
 * room. */
static void steal(uint32_t tid, uint64_t ns)
{
	const struct vp_thief_key key = {
	    .kind = VP_BY_TASK, .state = VP_STATE_PREEMPTED, .id = tid};

	vp_vec_each (&source.table, entry)
		if (entry->key.id == tid) {
			entry->cost.ns += ns;
			entry->cost.count++;
			return;
		}
	if (source.table.count < ROOM) {
		vp_vec_push(&source.table, ((struct entry){key, {ns, 1}}));
		return;
	}
	source.others.ns += ns;
	source.others.count++;
}

static void take_record(void *context, struct vp_record_header *record)
{
	const struct vp_thief *thief = (const void *)record;

	if (record->id != VP_ID_thief)
		return;
	records++;
	recorded_ns += thief->ns;
	recorded_count += thief->count;
	assert_int_equal(thief->kind, VP_BY_TASK);
	assert_string_equal(thief->comm, "thief");
}

static struct vp_account_writer *open_writer(void)
{
	static const vp_vms none = {0};
	struct vp_account_writer *writer;

	source = (struct vp_account_source){0};
	source.slots[0].has_vcpu = true;
	source.slots[0].vcpu = (struct vp_account_vcpu){
	    .pid = PID, .tid = TID, .since = SECOND, .begin = SECOND, .state = VP_STATE_GUEST};
	recorded_ns = recorded_count = records = 0;
	expect_no_error(
	    vp_account_writer_open(&ops, &none, VP_VENDOR_AMD, NULL, take_record, NULL, &writer));
	return writer;
}

/* Threads that come and go, for hours: each has its name, and the table never fills up. */
static void test_thieves_are_named_for_ever(void **state)
{
	struct vp_account_writer *writer = open_writer();
	uint64_t stolen = 0, now = SECOND;

	for (uint32_t second = 1; second <= 5000; second++) {
		for (uint32_t i = 0; i < 8; i++) {
			steal(100 + second * 8 + i, 1000 + i);
			stolen += 1000 + i;
		}
		now += SECOND;
		vp_account_writer_write(writer, now, false);
		assert_true(source.table.count <= ROOM);
	}
	/* Each entry that was removed got 3 ns more before its removal. */
	uint64_t gone = 5000 * 8 - source.table.count;
	assert_int_equal(recorded_ns, stolen + 3 * gone);
	assert_int_equal(recorded_count, 5000 * 8);
	assert_int_equal(source.others.count, 0);
	vp_account_writer_free(writer);
}

/* A copy of a vCPU's counters is dear: thieves need none of their own. */
static void test_thieves_copy_no_vcpus(void **state)
{
	struct vp_account_writer *writer = open_writer();

	vp_account_writer_write(writer, 2ULL * SECOND, false);
	copies = 0;
	for (uint32_t i = 0; i < 20; i++)
		steal(100 + i, 1000);
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	assert_int_equal(recorded_ns, 20 * 1000);
	assert_int_equal(copies, SLOTS);
	vp_account_writer_free(writer);
}

/* One that takes time again, long after it was forgotten: only what is new is recorded. */
static void test_thief_comes_back(void **state)
{
	struct vp_account_writer *writer = open_writer();

	steal(7, 5000);
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	assert_int_equal(recorded_ns, 5000);
	vp_account_writer_write(writer, 5ULL * SECOND, false);
	assert_int_equal(source.table.count, 1); /* there is room: it stays for a while */
	vp_account_writer_write(writer, 30ULL * SECOND, false);
	assert_int_equal(source.table.count, 0);
	assert_int_equal(recorded_ns, 5003);
	steal(7, 200);
	vp_account_writer_write(writer, 31ULL * SECOND, false);
	assert_int_equal(recorded_ns, 5203);
	steal(7, 10);
	vp_account_writer_write(writer, 32ULL * SECOND, true);
	assert_int_equal(recorded_ns, 5213);
	assert_int_equal(records, 4);
	vp_account_writer_free(writer);
}

/* One that takes a little again and again is not forgotten. */
static void test_thief_stays(void **state)
{
	struct vp_account_writer *writer = open_writer();

	for (uint64_t second = 2; second < 60; second += 9) {
		steal(7, 100);
		vp_account_writer_write(writer, second * SECOND, false);
		assert_int_equal(source.table.count, 1);
	}
	assert_int_equal(recorded_ns, 700);
	vp_account_writer_free(writer);
}

/* The source itself dropped it, as of a vCPU whose place was another's meanwhile. */
static void test_thief_was_dropped(void **state)
{
	struct vp_account_writer *writer = open_writer();

	steal(7, 5000);
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	source.table.count = 0;
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	steal(7, 200);
	vp_account_writer_write(writer, 4ULL * SECOND, false);
	assert_int_equal(recorded_ns, 5200);
	assert_int_equal(recorded_count, 2);
	vp_account_writer_free(writer);
}

/* Whose time it was, who had it, and how: by each kind of thief, of two vCPUs. */
static void test_thieves_of_each_kind(void **state)
{
	enum { NO_SUCH_IRQ = 999999 };
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	const struct vp_thief expected[] = {
	    {.vm = PID,
	     .vcpu = 5,
	     .state = VP_STATE_WAKING,
	     .kind = VP_BY_VCPU,
	     .number = 6,
	     .thief_pid = 2 * PID,
	     .ns = 10,
	     .count = 1},
	    {.vm = 2 * PID,
	     .vcpu = 6,
	     .state = VP_STATE_PREEMPTED,
	     .kind = VP_BY_VCPU,
	     .number = 5,
	     .thief_pid = PID,
	     .ns = 20,
	     .count = 2},
	    {.vm = PID,
	     .vcpu = 5,
	     .state = VP_STATE_PREEMPTED,
	     .kind = VP_BY_TASK,
	     .number = GROUPED,
	     .thief_pid = GROUPED,
	     .cgroup = GROUP,
	     .ns = 30,
	     .count = 3,
	     .comm = "thief"},
	    {.flags = 1,
	     .vm = 2 * PID,
	     .vcpu = 6,
	     .state = VP_STATE_WAKING,
	     .kind = VP_BY_TASK,
	     .number = KTHREAD,
	     .thief_pid = KTHREAD,
	     .ns = 40,
	     .count = 4,
	     .comm = "thief"},
	    {.vm = PID,
	     .vcpu = 5,
	     .state = VP_STATE_WAKING,
	     .kind = VP_BY_TASK,
	     .number = UNKNOWN_TASK,
	     .ns = 50,
	     .count = 5},
	    {.vm = 2 * PID,
	     .vcpu = 6,
	     .state = VP_STATE_IRQ,
	     .kind = VP_BY_DEVICE,
	     .number = NO_SUCH_IRQ,
	     .ns = 60,
	     .count = 6},
	    {.vm = PID,
	     .vcpu = 5,
	     .state = VP_STATE_WAKING,
	     .kind = VP_BY_NOBODY,
	     .ns = 70,
	     .count = 7},
	};

	vcpu_begin(1, PID, PID + 1);
	vcpu_begin(3, 2 * PID, 2 * PID + 2);
	add_thief(1, VP_BY_VCPU, VP_STATE_WAKING, 3, 10, 1);
	add_thief(3, VP_BY_VCPU, VP_STATE_PREEMPTED, 1, 20, 2);
	add_thief(1, VP_BY_TASK, VP_STATE_PREEMPTED, GROUPED, 30, 3);
	add_thief(3, VP_BY_TASK, VP_STATE_WAKING, KTHREAD, 40, 4);
	add_thief(1, VP_BY_TASK, VP_STATE_WAKING, UNKNOWN_TASK, 50, 5);
	add_thief(3, VP_BY_DEVICE, VP_STATE_IRQ, NO_SUCH_IRQ, 60, 6);
	add_thief(1, VP_BY_NOBODY, VP_STATE_WAKING, 0, 70, 7);
	for (unsigned second = 1; second <= 2; second++) {
		kept.count = 0;
		vp_account_writer_write(writer, (second + 1ULL) * SECOND, false);
		assert_int_equal(count_kept(VP_ID_thief), VP_ARRAY_SIZE(expected));
		for (size_t i = 0; i < VP_ARRAY_SIZE(expected); i++) {
			struct vp_thief thief = nth_kept(VP_ID_thief, i)->thief;
			assert_int_equal(thief.time, (second + 1ULL) * SECOND);
			thief.time = thief.id = 0;
			assert_memory_equal(&thief, &expected[i], sizeof(thief));
		}
		vp_vec_each (&source.table, entry) { /* the next second adds as much again */
			entry->cost.ns *= 2;
			entry->cost.count *= 2;
		}
	}
	assert_int_equal(vp_account_writer_cgroups(writer)->count, 1);
	assert_int_equal(vp_account_writer_cgroups(writer)->at[0].id, GROUP);
	/* Of one whose vCPU has no place any more, nothing is said. */
	kept.count = 0;
	source.slots[1].has_vcpu = false;
	add_thief(1, VP_BY_NOBODY, VP_STATE_PREEMPTED, 0, 80, 8);
	vp_account_writer_write(writer, 4ULL * SECOND, false);
	vp_vec_each (&kept, record)
		assert_true(record->header.id != VP_ID_thief || record->thief.vm != PID);
	close_keeping(writer, &vms);
}

/* A table that is more than half full forgets who took nothing for a second, one that is less so
 * keeps them for ten; what stands for many is kept. */
static void test_idle_thieves(void **state)
{
	for (uint32_t n = ROOM / 2; n <= ROOM / 2 + 1; n++) {
		bool full = n > ROOM / 2;
		uint64_t idle = full ? SECOND : 10ULL * SECOND;
		struct vp_account_writer *writer = open_writer();
		for (uint32_t tid = 1; tid <= n; tid++)
			steal(tid, 10);
		vp_account_writer_write(writer, 2ULL * SECOND, false);
		vp_account_writer_write(writer, 2ULL * SECOND + idle - 1, false);
		assert_int_equal(source.table.count, n);
		vp_account_writer_write(writer, 2ULL * SECOND + idle, false);
		assert_int_equal(source.table.count, 0);
		vp_account_writer_free(writer);
	}
}

/* Those for which there was no room are one, which is always there: each of them is told once. */
static void test_thieves_without_room(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	vcpu_begin(0, PID, PID + 1);
	source.others = (struct vp_thief_cost){.ns = 900, .count = 3};
	for (uint64_t second = 2; second < 40; second += 12)
		vp_account_writer_write(writer, second * SECOND, false);
	assert_int_equal(count_kept(VP_ID_thief), 1);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.kind, VP_BY_MANY);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.ns, 900);
	source.others.ns += 50;
	source.others.count++;
	vp_account_writer_write(writer, 50ULL * SECOND, false);
	assert_int_equal(nth_kept(VP_ID_thief, 1)->thief.ns, 50);
	assert_int_equal(nth_kept(VP_ID_thief, 1)->thief.count, 1);
	close_keeping(writer, &vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_thieves_are_named_for_ever),
	    cmocka_unit_test(test_thief_comes_back),
	    cmocka_unit_test(test_thieves_copy_no_vcpus),
	    cmocka_unit_test(test_thief_stays),
	    cmocka_unit_test(test_thief_was_dropped),
	    cmocka_unit_test(test_thieves_of_each_kind),
	    cmocka_unit_test(test_idle_thieves),
	    cmocka_unit_test(test_thieves_without_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
