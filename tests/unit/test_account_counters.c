/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters that only grow: sums over intervals, slots that stay one thing's, VMs that go. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "analyze/account/account_counters.h"
#include "schema/exit_reason.h"

enum { FIRST = 1000, SECOND = 2000, MS = 1000000 };

/* Accounts of intervals, one after the other, of two VMs with two vCPUs each. */
struct intervals {
	vp_vms vms;
	struct vp_account account;
	struct vp_account_counters counters;
};

static void begin_interval(struct intervals *all)
{
	if (!all->vms.count)
		for (uint32_t pid = FIRST; pid <= SECOND; pid += SECOND - FIRST)
			vp_vec_push(&all->vms,
				    ((struct vp_vm){.pid = pid,
						    .name = strdup(pid == FIRST ? "db" : "web")}));
	vp_account_init(&all->account, &all->vms);
}

static void take(struct intervals *all, uint32_t id, void *record)
{
	((struct vp_record_header *)record)->id = id;
	vp_account_take(&all->account, record);
}

static void take_times(struct intervals *all, uint32_t vm, uint32_t vcpu, uint64_t ms)
{
	struct vp_vcpu_account times = {.vm = vm,
					.vcpu = vcpu,
					.tid = vm + 1 + vcpu,
					.end = 100 * ms * MS,
					.guest = ms * MS,
					.preempted = 2 * ms * MS,
					.waking = 3 * ms * MS,
					.throttled = 5 * ms * MS,
					.irq = 7 * ms * MS,
					.poll_wasted = 11 * ms,
					.wakeups = ms,
					.preemptions = 2 * ms};

	times.halted = times.end - 18 * ms * MS;
	take(all, VP_ID_vcpu_account, &times);
	for (uint16_t bucket = 0; bucket < 3; bucket++)
		take(all, VP_ID_wake_bucket,
		     &(struct vp_wake_bucket){.vm = vm,
					      .vcpu = vcpu,
					      .bucket = (uint16_t)(4 * bucket),
					      .count = (uint32_t)ms << bucket,
					      .ns = ms << bucket});
}

static void take_exits(struct intervals *all, uint32_t reason, uint32_t count, uint64_t ns)
{
	struct vp_exit_account cost = {.vm = FIRST,
				       .vendor = VP_VENDOR_AMD,
				       .reason = reason,
				       .count = count,
				       .total = ns,
				       .kernel = ns};

	take(all, VP_ID_exit_account, &cost);
}

static void take_thief(struct intervals *all, uint32_t kind, uint32_t number, const char *comm,
		       uint64_t ns)
{
	struct vp_thief thief = {.vm = FIRST,
				 .state = VP_STATE_PREEMPTED,
				 .kind = (uint8_t)kind,
				 .number = number,
				 .thief_pid = kind == VP_BY_VCPU ? SECOND : number,
				 .ns = ns,
				 .count = 1};

	memcpy(thief.comm, comm, strlen(comm));
	take(all, VP_ID_thief, &thief);
}

static void end_interval(struct intervals *all)
{
	vp_account_counters_add(&all->counters, &all->account);
	vp_account_deinit(&all->account);
}

static void finish(struct intervals *all)
{
	vp_account_counters_deinit(&all->counters);
	vp_vms_deinit(&all->vms);
}

static void test_sums(void **state)
{
	struct intervals all = {0};

	for (unsigned i = 0; i < 3; i++) {
		begin_interval(&all);
		take_times(&all, FIRST, 0, 1);
		take_times(&all, FIRST, 1, 10);
		take_times(&all, SECOND, 0, 100);
		assert_int_equal(all.counters.has_samples, i > 1);
		if (i)
			take(&all, VP_ID_vm_samples,
			     &(struct vp_vm_samples){
				 .vm = SECOND, .guest_user = 4, .guest_kernel = 5 + i, .host = 6});
		end_interval(&all);
	}
	assert_int_equal(all.counters.intervals, 3);
	assert_int_equal(all.counters.vms.count, 2);
	const struct vp_counted_vm *db = &all.counters.vms.at[0], *web = &all.counters.vms.at[1];
	assert_int_equal(db->id, FIRST);
	assert_int_equal(db->vcpus.count, 2);
	assert_int_equal(web->vcpus.count, 1);
	assert_int_equal(db->vcpus.at[0].ns[VP_STATE_GUEST], 3 * MS);
	assert_int_equal(db->vcpus.at[1].number, 1);
	assert_int_equal(db->vcpus.at[1].ns[VP_STATE_GUEST], 30 * MS);
	assert_int_equal(db->vcpus.at[1].wakeups, 30);
	assert_int_equal(db->vcpus.at[1].preemptions, 60);
	assert_int_equal(db->vcpus.at[1].poll_wasted_ns, 330);
	assert_int_equal(web->vcpus.at[0].ns[VP_STATE_GUEST], 300 * MS);
	assert_int_equal(db->wakes[0], 33);
	assert_int_equal(db->wakes[1], 0);
	assert_int_equal(db->wakes[4], 66);
	assert_int_equal(db->wakes[8], 132);
	assert_int_equal(db->wake_ns, 33 * 7);
	assert_int_equal(web->wakes[8], 1200);
	assert_int_equal(web->samples[VP_SAMPLE_GUEST_USER], 8);
	assert_int_equal(web->samples[VP_SAMPLE_GUEST_KERNEL], 6 + 7);
	assert_int_equal(web->samples[VP_SAMPLE_HOST], 12);
	for (size_t mode = 0; mode < VP_SAMPLE_MODES; mode++)
		assert_int_equal(db->samples[mode], 0);
	/* Wanted to run and did not: preempted, waking, throttled, interrupts. */
	assert_int_equal(vp_counted_vcpu_stolen(&db->vcpus.at[1]), 3 * 10 * (2 + 3 + 5 + 7) * MS);
	finish(&all);
}

/* A slot is one thing's for good; what comes when all are taken is "other". */
static void test_slots(void **state)
{
	struct intervals all = {0};
	char comm[VP_COMM_SIZE];
	const struct vp_counted_vm *db;

	begin_interval(&all);
	take_times(&all, FIRST, 0, 1);
	take_thief(&all, VP_BY_VCPU, 0, "", 4 * MS);
	take_thief(&all, VP_BY_TASK, 77, "backup", VP_COUNTED_LEAST_NS - 1);
	take_thief(&all, VP_BY_DEVICE, 5, "eth0", 2 * MS);
	take_thief(&all, VP_BY_NOBODY, 0, "", 50 * MS);
	take_thief(&all, VP_BY_UNKNOWN, 0, "", 3);
	end_interval(&all);
	db = &all.counters.vms.at[0];
	assert_int_equal(db->n_thieves, 2);
	assert_string_equal(db->thieves[0].kind, "vm");
	assert_string_equal(db->thieves[0].name, "web");
	assert_string_equal(db->thieves[1].kind, "interrupt");
	assert_string_equal(db->thieves[1].name, "eth0");
	assert_string_equal(db->thieves[VP_COUNTED_THIEVES].name, "other");
	assert_int_equal(db->thieves[VP_COUNTED_THIEVES].ns, VP_COUNTED_LEAST_NS - 1 + 3);
	for (uint32_t i = 0; i < VP_COUNTED_THIEVES + 1; i++) {
		begin_interval(&all);
		take_times(&all, FIRST, 0, 1);
		snprintf(comm, sizeof(comm), "task-%u", i);
		take_thief(&all, VP_BY_TASK, 100 + i, comm, 10 * MS);
		take_thief(&all, VP_BY_VCPU, 0, "", 1);
		end_interval(&all);
	}
	db = &all.counters.vms.at[0];
	assert_int_equal(db->n_thieves, VP_COUNTED_THIEVES);
	assert_string_equal(db->thieves[0].name, "web");
	assert_int_equal(db->thieves[0].ns, 4 * MS + 8);
	assert_string_equal(db->thieves[6].name, "task-4");
	assert_int_equal(db->thieves[6].ns, 10 * MS);
	assert_int_equal(db->thieves[VP_COUNTED_THIEVES].ns, VP_COUNTED_LEAST_NS - 1 + 3 + 30 * MS);
	finish(&all);
}

/* A VM without records is counted, from 0 on, for as long as it runs. */
static void test_without_records(void **state)
{
	struct intervals all = {0};

	for (unsigned i = 0; i < 2 * VP_COUNTED_ABSENT; i++) {
		begin_interval(&all);
		if (i < VP_COUNTED_ABSENT)
			take_times(&all, FIRST, 0, 1);
		end_interval(&all);
		vp_account_counters_note(&all.counters, FIRST);
		vp_account_counters_note(&all.counters, SECOND);
	}
	assert_int_equal(all.counters.vms.count, 2);
	assert_int_equal(all.counters.vms.at[0].vcpus.at[0].ns[VP_STATE_GUEST],
			 VP_COUNTED_ABSENT * MS);
	assert_int_equal(all.counters.vms.at[1].id, SECOND);
	assert_int_equal(all.counters.vms.at[1].vcpus.count, 0);
	assert_string_equal(all.counters.vms.at[1].thieves[VP_COUNTED_THIEVES].name, "other");
	for (unsigned i = 0; i < VP_COUNTED_ABSENT; i++) {
		begin_interval(&all);
		end_interval(&all);
	}
	assert_int_equal(all.counters.vms.count, 0);
	finish(&all);
}

static void test_exits(void **state)
{
	struct intervals all = {0};

	for (unsigned i = 0; i < 2; i++) {
		begin_interval(&all);
		take_times(&all, FIRST, 0, 1);
		take_exits(&all, 0x72, 10, 2 * MS);                 /* CPUID */
		take_exits(&all, 0x7b, 3, VP_COUNTED_LEAST_NS - 1); /* IOIO */
		end_interval(&all);
	}
	const struct vp_counted_vm *db = &all.counters.vms.at[0];
	assert_int_equal(db->n_reasons, 1);
	assert_string_equal(db->reasons[0].name, "CPUID");
	assert_int_equal(db->reasons[0].count, 20);
	assert_int_equal(db->reasons[0].ns, 4 * MS);
	assert_string_equal(db->reasons[VP_COUNTED_REASONS].name, "other");
	assert_int_equal(db->reasons[VP_COUNTED_REASONS].count, 6);
	finish(&all);
}

/* A VM that ended has no counters; one that comes again begins anew. */
static void test_gone(void **state)
{
	struct intervals all = {0};

	for (unsigned i = 0; i < 1 + VP_COUNTED_ABSENT; i++) {
		begin_interval(&all);
		take_times(&all, SECOND, 0, 1);
		if (i == 0)
			take_times(&all, FIRST, 0, 1);
		end_interval(&all);
		assert_int_equal(all.counters.vms.count, i < VP_COUNTED_ABSENT ? 2 : 1);
	}
	assert_int_equal(all.counters.vms.at[0].id, SECOND);
	assert_int_equal(all.counters.vms.at[0].vcpus.at[0].ns[VP_STATE_GUEST],
			 (1 + VP_COUNTED_ABSENT) * MS);
	begin_interval(&all);
	take_times(&all, FIRST, 0, 4);
	end_interval(&all);
	assert_int_equal(all.counters.vms.at[1].vcpus.at[0].ns[VP_STATE_GUEST], 4 * MS);
	finish(&all);
}

/* The recorder counts losses since it began, and writes them when there are new ones. */
static void test_losses(void **state)
{
	static const uint64_t lost[] = {0, 3, 0, 5, 2};
	static const uint64_t sums[] = {0, 3, 3, 5, 7}; /* with another recorder at last */
	struct intervals all = {0};

	for (size_t i = 0; i < 5; i++) {
		struct vp_account_loss loss = {.vcpus = lost[i]};
		begin_interval(&all);
		if (lost[i])
			take(&all, VP_ID_account_loss, &loss);
		end_interval(&all);
		assert_int_equal(all.counters.lost, sums[i]);
	}
	finish(&all);
}

/* The latest interval with steal, and its recording; intervals without change nothing. */
static void test_moments(void **state)
{
	struct intervals all = {0};

	for (uint64_t i = 1; i <= 3; i++) {
		begin_interval(&all);
		take_times(&all, FIRST, 0, i < 3 ? i : 0);
		if (i < 3)
			take_thief(&all, VP_BY_TASK, 77, "backup", i * MS);
		all.counters.recording = i == 1 ? "first" : i == 2 ? "second" : "third";
		all.counters.realtime = i;
		end_interval(&all);
	}
	const struct vp_counted_vm *db = &all.counters.vms.at[0];
	assert_string_equal(db->vcpus.at[0].stolen.recording, "second");
	assert_int_equal(db->vcpus.at[0].stolen.realtime, 2);
	assert_int_equal(db->vcpus.at[0].stolen.ns, 2 * (2 + 3 + 5 + 7) * MS);
	assert_string_equal(db->thieves[0].stolen.recording, "second");
	assert_int_equal(db->thieves[0].stolen.ns, 2 * MS);
	finish(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sums),   cmocka_unit_test(test_slots),
	    cmocka_unit_test(test_exits),  cmocka_unit_test(test_without_records),
	    cmocka_unit_test(test_gone),   cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_moments)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
