/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the trace's program makes of a guest's current task and count of switches at VM exits. The
 * guest's memory is this test's. */
#include "unit.h"

#include <unistd.h>

#include <bpf/bpf.h>

#include "base/vec.h"
#include "bpf/guest_current_abi.h"
#include "bpf/trace_abi.h"
#include "collect/programs/trace_rings.h"
#include "collect/programs/tracer.h"
#include "fake_vcpu.h"
#include "kernel.h"
#include "schema/trace_records.h"
#include "trace.skel.h"

enum { RING = 1 << 20, TINY_RING = 4096, AT_IDS = 16, AT_COMM = 32, TASK_BYTES = 64, TASKS = 4 };

/* Guest physical memory from 0 on, mapped directly at DIRECT. */
#define DIRECT 0xffff888000000000ULL

static struct {
	uint64_t current, chosen, count;
	char tasks[TASKS][TASK_BYTES];
} guest __attribute__((aligned(4096)));

struct rig {
	struct trace_bpf *programs;
	struct vp_trace_rings rings;
	struct fake_vcpu vcpu;
	uint32_t pcpu;
	uint64_t exits;
	VP_VEC(struct vp_trace_guest_switch) switches;
	VP_VEC(struct vp_guest_task) names;
};

static void take_one(struct rig *rig, const struct vp_record_header *header)
{
	size_t size = vp_record_length(header);
	struct vp_trace_guest_switch change = {0};
	struct vp_guest_task name = {0};

	if (header->id == VP_TRACE_ID_guest_switch && size == sizeof(change)) {
		memcpy(&change, header, size);
		assert_int_equal(change.vm, getpid());
		assert_int_equal(change.tid, vp_own_tid());
		assert_int_equal(change.vcpu, 3);
		vp_vec_push(&rig->switches, change);
	} else if (header->id == VP_ID_guest_task && size == sizeof(name)) {
		memcpy(&name, header, size);
		vp_vec_push(&rig->names, name);
	} else {
		rig->exits += header->id == VP_TRACE_ID_kvm_exit;
	}
}

static void take(void *context, uint32_t pcpu, char *records, size_t size)
{
	vp_each_record(records, size, header) take_one(context, (const void *)header);
}

static uint64_t va_of(uint32_t task)
{
	return DIRECT + (uint64_t)((char *)guest.tasks[task] - (char *)&guest);
}

static void make_task(uint32_t task, uint32_t tid, uint32_t tgid, const char *comm)
{
	uint32_t ids[] = {tid, tgid};

	memcpy(guest.tasks[task] + AT_IDS, ids, sizeof(ids));
	memset(guest.tasks[task] + AT_COMM, 0, 16);
	memcpy(guest.tasks[task] + AT_COMM, comm, strlen(comm));
}

static void put(const struct bpf_map *map, const void *key, const void *value)
{
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY), 0);
}

static void tell_places(const struct trace_bpf *programs)
{
	uint32_t zero = 0;
	uint64_t key = (uint64_t)getpid() << 32 | 3;
	const struct vp_identity_vm vm = {.direct_map = DIRECT, .n_slots = 1};
	const struct vp_identity_slot slot = {0, sizeof(guest), (uint64_t)&guest};
	const struct vp_identity_vcpu vcpu = {.key = key,
					      .current_hva = (uint64_t)&guest.current,
					      .off_ids = AT_IDS,
					      .off_comm = AT_COMM};
	const struct vp_guest_run run = {.count_hva = (uint64_t)&guest.count,
					 .chosen_hva = (uint64_t)&guest.chosen};

	put(programs->maps.identity_vms, &zero, &vm);
	put(programs->maps.identity_slots, &zero, &slot);
	put(programs->maps.guest_runs, &zero, &run);
	put(programs->maps.identity_vcpus, &zero, &vcpu);
	put(programs->maps.identity_index, &key, &zero);
}

static bool rig_open(struct rig *rig, uint32_t ring)
{
	*rig = (struct rig){.pcpu = vp_stay_here()};
	if (!fake_vcpu_make(&rig->vcpu)) {
		print_message("skipped: this kernel does not describe KVM\n");
		return false;
	}
	*rig->vcpu.number = 3;
	rig->programs = trace_bpf__open();
	rig->programs->rodata->vendor = VP_VENDOR_AMD;
	rig->programs->rodata->sees_guests = 1;
	assert_int_equal(vp_trace_rings_plan(&rig->rings, rig->programs, ring), 0);
	assert_int_equal(trace_bpf__load(rig->programs), 0);
	expect_no_error(vp_trace_rings_map(&rig->rings));
	expect_no_error(vp_trace_rings_add(&rig->rings, rig->pcpu));
	tell_places(rig->programs);
	rig->programs->bss->enabled = 1;
	return true;
}

static void rig_close(struct rig *rig)
{
	vp_trace_rings_deinit(&rig->rings);
	vp_vec_deinit(&rig->switches);
	vp_vec_deinit(&rig->names);
	trace_bpf__destroy(rig->programs);
	fake_vcpu_free(&rig->vcpu);
}

static void drain(struct rig *rig)
{
	vp_trace_rings_drain(&rig->rings, true, take, rig);
}

static void leave(struct rig *rig)
{
	fake_vcpu_leaves(&rig->vcpu, 0x60, 0, 0x1000);
	vp_run(rig->programs->progs.kvm_exit, rig->vcpu.address, 2, 0);
}

/* The guest is left when it has `made` more switches, has chosen one task and runs another. */
static void leave_with(struct rig *rig, uint64_t made, uint32_t chosen, uint32_t current)
{
	guest.count += made;
	guest.chosen = va_of(chosen);
	guest.current = va_of(current);
	leave(rig);
	drain(rig);
}

static void make_guest(void)
{
	make_task(0, 0, 0, "swapper/3");
	make_task(1, 11, 10, "one");
	make_task(2, 20, 20, "two");
	make_task(3, 30, 30, "three");
	guest.count = 1000;
}

static void expect_last(const struct rig *rig, size_t count, uint32_t tid, uint32_t switches,
			uint32_t flags)
{
	assert_int_equal(rig->switches.count, count);
	const struct vp_trace_guest_switch *last = &rig->switches.at[count - 1];
	assert_int_equal(last->guest_tid, tid);
	assert_int_equal(last->switches, switches);
	assert_int_equal(last->switch_flags, flags);
}

/* Only what changed is told, and each thread is named once. */
static void test_changes(void **state)
{
	struct rig rig;

	make_guest();
	if (!rig_open(&rig, RING))
		skip();
	leave_with(&rig, 0, 1, 1);
	expect_last(&rig, 1, 11, 0, VP_SWITCH_FIRST);
	assert_int_equal(rig.switches.at[0].guest_pid, 10);
	for (int i = 0; i < 5; i++)
		leave_with(&rig, 0, 1, 1);
	assert_int_equal(rig.switches.count, 1);
	leave_with(&rig, 1, 2, 2);
	expect_last(&rig, 2, 20, 1, 0);
	/* There and back again: the same task, another count. */
	leave_with(&rig, 2, 2, 2);
	expect_last(&rig, 3, 20, 2, 0);
	leave_with(&rig, 7, 0, 0);
	expect_last(&rig, 4, 0, 7, 0);
	leave_with(&rig, 1, 1, 1);
	expect_last(&rig, 5, 11, 1, 0);
	assert_int_equal(rig.names.count, 3);
	assert_string_equal(rig.names.at[0].comm, "one");
	assert_string_equal(rig.names.at[2].comm, "swapper/3");
	assert_int_equal(rig.exits, 10);
	/* exec: a new name with the next switch. */
	make_task(1, 11, 10, "uno");
	leave_with(&rig, 2, 1, 1);
	assert_int_equal(rig.names.count, 4);
	rig_close(&rig);
}

/* Between counting, choosing and changing nothing is said to be settled. */
static void test_middle_of_a_switch(void **state)
{
	struct rig rig;

	make_guest();
	if (!rig_open(&rig, RING))
		skip();
	leave_with(&rig, 0, 1, 1);
	leave_with(&rig, 1, 1, 1); /* counted, not chosen */
	expect_last(&rig, 2, 11, 1, VP_SWITCH_MIDDLE);
	leave_with(&rig, 0, 2, 1); /* chosen */
	expect_last(&rig, 3, 11, 0, VP_SWITCH_MIDDLE);
	leave_with(&rig, 0, 2, 1);
	assert_int_equal(rig.switches.count, 3);
	leave_with(&rig, 0, 2, 2);
	expect_last(&rig, 4, 20, 0, 0);
	/* Two switches, and in the middle of the second. */
	leave_with(&rig, 2, 1, 3);
	expect_last(&rig, 5, 30, 2, VP_SWITCH_MIDDLE);
	leave_with(&rig, 3, 1, 1);
	expect_last(&rig, 6, 11, 3, 0);
	rig_close(&rig);
}

/* A guest may say what it wants: no count that cannot be is believed, no task that is none. */
static void test_hostile_guest(void **state)
{
	struct rig rig;

	make_guest();
	if (!rig_open(&rig, RING))
		skip();
	leave_with(&rig, 0, 1, 1);
	leave_with(&rig, (uint64_t)-3, 1, 1);
	expect_last(&rig, 2, 11, 0, VP_SWITCH_IMPLAUSIBLE | VP_SWITCH_MIDDLE);
	leave_with(&rig, 1ULL << 31, 1, 1);
	expect_last(&rig, 3, 11, 0, VP_SWITCH_IMPLAUSIBLE | VP_SWITCH_MIDDLE);
	leave_with(&rig, 1ULL << 40, 1, 1);
	expect_last(&rig, 4, 11, 0, VP_SWITCH_IMPLAUSIBLE | VP_SWITCH_MIDDLE);
	leave_with(&rig, 1, 2, 2);
	expect_last(&rig, 5, 20, 1, 0);
	guest.chosen = guest.current = 0x1234;
	guest.count++;
	leave(&rig);
	drain(&rig);
	expect_last(&rig, 6, 0, 1, VP_SWITCH_UNKNOWN);
	make_task(3, UINT32_MAX, 30, "three");
	leave_with(&rig, 1, 3, 3);
	assert_int_equal(rig.switches.at[6].switch_flags, VP_SWITCH_UNKNOWN);
	leave_with(&rig, 1, 1, 1);
	expect_last(&rig, 8, 11, 1, 0);
	rig_close(&rig);
}

/* Memory that cannot be read now: said once; and what was counted meanwhile is not lost. */
static void test_blind(void **state)
{
	struct rig rig;
	uint32_t zero = 0;
	struct vp_guest_run run;

	make_guest();
	if (!rig_open(&rig, RING))
		skip();
	int map = bpf_map__fd(rig.programs->maps.guest_runs);
	leave_with(&rig, 0, 1, 1);
	assert_int_equal(bpf_map_lookup_elem(map, &zero, &run), 0);
	run.count_hva = 0;
	put(rig.programs->maps.guest_runs, &zero, &run);
	leave_with(&rig, 2, 2, 2);
	leave_with(&rig, 1, 1, 1);
	expect_last(&rig, 2, 0, 0, VP_SWITCH_UNKNOWN);
	assert_int_equal(bpf_map_lookup_elem(map, &zero, &run), 0);
	run.count_hva = (uint64_t)&guest.count;
	put(rig.programs->maps.guest_runs, &zero, &run);
	leave_with(&rig, 0, 1, 1);
	expect_last(&rig, 3, 11, 3, 0);
	leave_with(&rig, 0, 1, 1);
	assert_int_equal(rig.switches.count, 3);
	rig_close(&rig);
}

/* What found no room is told later, with its switches; until then no exit is written either. */
static void test_full_ring(void **state)
{
	enum { TRIES = 2000 };
	struct rig rig;
	uint64_t made = 0;

	make_guest();
	if (!rig_open(&rig, TINY_RING))
		skip();
	guest.chosen = guest.current = va_of(1);
	leave(&rig);
	for (uint32_t i = 0; i < TRIES; i++) {
		guest.count += 1;
		guest.chosen = guest.current = va_of(1 + i % 3);
		leave(&rig);
	}
	drain(&rig);
	size_t before = rig.switches.count;
	assert_true(before > 1 && before < TRIES * 3 / 4);
	assert_true(rig.exits <= before && rig.exits + 1 >= before);
	leave(&rig);
	drain(&rig);
	assert_int_equal(rig.switches.count, before + 1);
	assert_true(rig.switches.at[before].switch_flags & VP_SWITCH_LOST);
	vp_vec_each (&rig.switches, change)
		made += change->switches;
	assert_int_equal(made, TRIES);
	rig_close(&rig);
}

static void take_nothing(void *context, uint32_t pcpu, char *records, size_t size)
{
}

/* Guests are looked at whose kernel tells where it counts; places are given back and used again. */
static void test_identify(void **state)
{
	enum { ROUNDS = VP_IDENTITY_VCPUS / 2 + 10, NOBODY = 1 << 22 };
	const struct vp_tracer_options options = {.sets = VP_TRACE_SET_guest | VP_TRACE_SET_kvm,
						  .ring_bytes = 4096,
						  .take = take_nothing};
	struct vp_guest_state vm = {.pid = (uint32_t)getpid()};
	struct vp_guest_finding finding = {.off_tid = 16, .off_tgid = 20, .off_comm = 32};
	struct vp_tracer *tracer;

	expect_no_error(vp_tracer_open(&options, &tracer));
	vp_guest_memory_add(&vm.memory, 0, 1 << 20, 0x70000000);
	assert_false(vp_tracer_can_see(&finding));
	for (uint32_t i = 0; i < 2; i++) {
		const struct vp_guest_current_address cpu = {i, i, 0x1000 + 8 * i, 0x2000 + 8 * i};
		vp_vec_push(&finding.cpus, cpu);
		assert_false(vp_tracer_can_see(&finding));
		vp_vec_push(&finding.counts, ((struct vp_guest_count_address){
						 i, VP_GUEST_switches, 0x3000 + 8 * i, false}));
		assert_true(vp_tracer_can_see(&finding));
	}
	expect_no_error(vp_tracer_identify(tracer, 0, &vm, &finding));
	vp_tracer_forget(tracer, vm.pid); /* it still runs: its places stay */
	expect_no_error(vp_tracer_identify(tracer, 0, &vm, &finding));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		vm.pid = NOBODY + i;
		expect_no_error(vp_tracer_identify(tracer, 1, &vm, &finding));
		vp_tracer_forget(tracer, vm.pid);
	}
	finding.cpus.at[1].chosen_gpa = 0;
	assert_false(vp_tracer_can_see(&finding));
	vp_vec_deinit(&finding.cpus);
	vp_vec_deinit(&finding.counts);
	vp_guest_memory_deinit(&vm.memory);
	vp_tracer_free(tracer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_changes),       cmocka_unit_test(test_middle_of_a_switch),
	    cmocka_unit_test(test_hostile_guest), cmocka_unit_test(test_blind),
	    cmocka_unit_test(test_full_ring),     cmocka_unit_test(test_identify),
	};

	if (!vp_kernel_takes_programs("the trace"))
		return VP_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
