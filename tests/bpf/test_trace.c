/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trace programs in the kernel: everything that it tells them is a record, or is counted. */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/vec.h"
#include "bpf/last_exit_abi.h"
#include "bpf/trace_abi.h"
#include "collect/programs/trace_rings.h"
#include "collect/programs/tracer.h"
#include "fake_vcpu.h"
#include "kernel.h"
#include "trace.skel.h"

enum { MS = 1000000, RING = 1 << 20, SLEEPS = 50 };

/* What the records say of this thread, and of all. */
struct seen {
	uint32_t tid;
	uint64_t out, in, woken, woken_here, slept;
	uint64_t records, names;
	uint64_t begins, ends; /* of soft interrupts, on this thread's pCPU */
	uint32_t pcpu;
	char comm[VP_COMM_SIZE];
};

union any {
	struct vp_record_header header;
	struct vp_task task;
	struct vp_trace_sched_switch change;
	struct vp_trace_sched_wakeup wakeup;
	struct vp_trace_softirq_entry softirq;
};

static void see_switch(struct seen *seen, const struct vp_trace_sched_switch *change)
{
	seen->in += change->next_tid == seen->tid;
	seen->out += change->prev_tid == seen->tid;
	seen->slept += change->prev_tid == seen->tid && change->prev_state & 1;
}

static void take_record(struct seen *seen, uint32_t pcpu, const union any *any)
{
	size_t size = vp_record_length(&any->header);

	seen->records++;
	switch (any->header.id) {
	case VP_ID_task:
		assert_int_equal(size, sizeof(any->task));
		seen->names++;
		if (any->task.tid == seen->tid)
			memcpy(seen->comm, any->task.comm, sizeof(seen->comm));
		break;
	case VP_TRACE_ID_sched_switch:
		assert_int_equal(size, VP_TRACE_SIZE_sched_switch);
		assert_int_equal(any->change.size, size);
		see_switch(seen, &any->change);
		break;
	case VP_TRACE_ID_sched_wakeup:
		seen->woken += any->wakeup.woken_tid == seen->tid;
		seen->woken_here +=
		    any->wakeup.woken_tid == seen->tid && any->wakeup.target_cpu == seen->pcpu;
		break;
	case VP_TRACE_ID_softirq_entry:
		assert_true(any->softirq.vec < 10);
		seen->begins += pcpu == seen->pcpu;
		break;
	case VP_TRACE_ID_softirq_exit:
		seen->ends += pcpu == seen->pcpu;
		break;
	}
}

static void take_records(void *context, uint32_t pcpu, char *records, size_t size)
{
	vp_each_record(records, size, header) take_record(context, pcpu, (const void *)header);
}

static struct vp_tracer *open_tracer(unsigned sets, size_t ring, struct seen *seen)
{
	const struct vp_tracer_options options = {
	    .sets = sets, .ring_bytes = ring, .take = take_records, .context = seen};
	struct vp_tracer *tracer;

	expect_no_error(vp_tracer_open(&options, &tracer));
	return tracer;
}

/* Each switch and wake-up of this thread that a program of the test's own is told of. */
static void test_switches_and_wakeups(void **state)
{
	struct seen seen = {.tid = vp_own_tid(), .pcpu = vp_stay_here()};
	struct vp_tracer *tracer = open_tracer(VP_TRACE_SET_sched, RING, &seen);
	struct vp_told comes, goes, wakeups;

	vp_told_open(&wakeups, "sched_wakeup", 0);
	vp_told_open(&goes, "sched_switch", 1);
	vp_told_open(&comes, "sched_switch", 2);
	/* Between beginning and reading this thread may lose its pCPU: so do it again if it does.
	 */
	uint64_t woken = vp_told_read(&wakeups), out = vp_told_read(&goes),
		 in = vp_told_read(&comes);
	vp_tracer_begin(tracer);
	uint64_t late_woken = vp_told_read(&wakeups), late_out = vp_told_read(&goes),
		 late_in = vp_told_read(&comes);
	for (int i = 0; i < SLEEPS; i++) {
		vp_sleep(MS);
		expect_no_error(vp_tracer_drain(tracer));
	}
	uint64_t early_woken = vp_told_read(&wakeups), early_out = vp_told_read(&goes),
		 early_in = vp_told_read(&comes);
	vp_tracer_end(tracer);
	woken = vp_told_read(&wakeups) - woken;
	out = vp_told_read(&goes) - out;
	in = vp_told_read(&comes) - in;
	expect_no_error(vp_tracer_drain(tracer));
	assert_int_equal(vp_tracer_lost(tracer, seen.pcpu), 0);
	assert_in_range(seen.woken, early_woken - late_woken, woken);
	assert_in_range(seen.out, early_out - late_out, out);
	assert_in_range(seen.in, early_in - late_in, in);
	assert_true(seen.slept > 0 && seen.slept <= SLEEPS);
	assert_int_equal(seen.woken_here, seen.woken);
	assert_string_equal(seen.comm, "trace tester");
	vp_told_close(&comes);
	vp_told_close(&goes);
	vp_told_close(&wakeups);
	vp_tracer_free(tracer);
}

/* Before the begin and after the end nothing is written, nor is what was not asked for. */
static void test_begin_and_end(void **state)
{
	struct seen seen = {.tid = vp_own_tid(), .pcpu = vp_stay_here()};
	struct vp_tracer *tracer = open_tracer(VP_TRACE_SET_irq, RING, &seen);

	vp_sleep(5 * MS);
	expect_no_error(vp_tracer_drain(tracer));
	assert_int_equal(seen.records, 0);
	vp_tracer_begin(tracer);
	vp_burn(50 * MS);
	for (int i = 0; i < 5; i++)
		vp_sleep(5 * MS);
	vp_tracer_end(tracer);
	expect_no_error(vp_tracer_drain(tracer));
	uint64_t records = seen.records;
	assert_true(seen.begins > 0);
	assert_in_range(seen.begins + 1, seen.ends, seen.ends + 2);
	assert_int_equal(seen.in + seen.out + seen.woken, 0);
	vp_sleep(5 * MS);
	expect_no_error(vp_tracer_drain(tracer));
	assert_int_equal(seen.records, records);
	vp_tracer_free(tracer);
}

/* What finds no room in a tiny ring is counted: what was seen and what was lost is all. */
static void test_full_ring(void **state)
{
	struct seen seen = {.tid = vp_own_tid(), .pcpu = vp_stay_here()};
	struct seen whole = seen;
	struct vp_tracer *tracer = open_tracer(VP_TRACE_SET_sched, 4096, &seen);
	struct vp_tracer *wide = open_tracer(VP_TRACE_SET_sched, RING, &whole);
	uint64_t lost = 0, lost_of_wide = 0;

	vp_tracer_begin(wide);
	vp_tracer_begin(tracer);
	for (int i = 0; i < 2500; i++) {
		vp_sleep(MS / 10);
		expect_no_error(vp_tracer_drain(wide));
	}
	vp_tracer_end(tracer);
	vp_tracer_end(wide);
	expect_no_error(vp_tracer_drain(tracer));
	expect_no_error(vp_tracer_drain(wide));
	for (uint32_t pcpu = 0; pcpu < 1024; pcpu++) {
		lost += vp_tracer_lost(tracer, pcpu);
		lost_of_wide += vp_tracer_lost(wide, pcpu);
	}
	assert_true(lost > 0);
	assert_int_equal(lost_of_wide, 0);
	/* The wide one began before and ended after: it has all that the tiny one was told, and a
	 * name once where the other tries again; names that found no room are lost each time. */
	assert_true(seen.in <= whole.in && seen.in > 0);
	assert_true(seen.records - seen.names <= whole.records - whole.names);
	assert_true(seen.records - seen.names + lost >= (whole.records - whole.names) * 9 / 10);
	vp_tracer_free(wide);
	vp_tracer_free(tracer);
}

#if defined(__x86_64__)

/* The programs by themselves, with a ring of this pCPU. */
struct rig {
	struct trace_bpf *programs;
	struct vp_trace_rings rings;
	VP_VEC(struct vp_trace_kvm_exit) exits;
	VP_VEC(struct vp_trace_kvm_entry) entries;
	VP_VEC(struct vp_trace_kvm_inj_virq) injections;
};

static void take_kvm(struct rig *rig, const struct vp_record_header *header)
{
	size_t size = vp_record_length(header);
	struct vp_trace_kvm_exit exit = {0};
	struct vp_trace_kvm_entry entry = {0};
	struct vp_trace_kvm_inj_virq injection = {0};

	if (header->id == VP_TRACE_ID_kvm_exit && size == sizeof(exit)) {
		memcpy(&exit, header, size);
		vp_vec_push(&rig->exits, exit);
	} else if (header->id == VP_TRACE_ID_kvm_entry && size == sizeof(entry)) {
		memcpy(&entry, header, size);
		vp_vec_push(&rig->entries, entry);
	} else if (header->id == VP_TRACE_ID_kvm_inj_virq && size == sizeof(injection)) {
		memcpy(&injection, header, size);
		vp_vec_push(&rig->injections, injection);
	} else {
		assert_int_equal(header->id, VP_ID_task);
	}
}

static void take_of_rig(void *context, uint32_t pcpu, char *records, size_t size)
{
	vp_each_record(records, size, header) take_kvm(context, (const void *)header);
}

static struct rig rig_open(uint32_t vendor)
{
	struct rig rig = {.programs = trace_bpf__open()};
	uint32_t pcpu = vp_stay_here();

	rig.programs->rodata->vendor = vendor;
	assert_int_equal(vp_trace_rings_plan(&rig.rings, rig.programs, RING), 0);
	bpf_map__set_max_entries(rig.programs->maps.last_exit, rig.rings.n_cpus);
	assert_int_equal(trace_bpf__load(rig.programs), 0);
	expect_no_error(vp_trace_rings_map(&rig.rings));
	expect_no_error(vp_trace_rings_add(&rig.rings, pcpu));
	rig.programs->bss->enabled = 1;
	return rig;
}

static void rig_drain(struct rig *rig)
{
	vp_trace_rings_drain(&rig->rings, true, take_of_rig, rig);
}

static void rig_close(struct rig *rig)
{
	vp_trace_rings_deinit(&rig->rings);
	vp_vec_deinit(&rig->exits);
	vp_vec_deinit(&rig->entries);
	vp_vec_deinit(&rig->injections);
	trace_bpf__destroy(rig->programs);
}

/* Two vCPUs by turns, as KVM of v5.17 and later tells of them, then as older ones do. */
static void test_kvm(void **state)
{
	struct fake_vcpu fakes[2];
	struct rig rig = {0};

	for (uint32_t i = 0; i < 2; i++) {
		if (!fake_vcpu_make(&fakes[i])) {
			print_message("skipped: this kernel does not describe KVM\n");
			skip();
		}
		*fakes[i].number = 3 + i;
	}
	rig = rig_open(VP_VENDOR_AMD);
	const struct trace_bpf *programs = rig.programs;
	for (uint32_t i = 0; i < 40; i++) {
		const struct fake_vcpu *fake = &fakes[i % 2];
		vp_run(programs->progs.kvm_inj_virq, 30 + i, 0, 0);
		vp_run(programs->progs.kvm_entry, fake->address, 0, 0);
		fake_vcpu_leaves(fake, i % 3 ? 0x78 : 0x72, 0xffffffff81000000 + i, 0x1000);
		vp_run(programs->progs.kvm_exit, fake->address, 2, 0);
	}
	vp_run(programs->progs.kvm_exit, 0x7b, fakes[1].address, 0);
	rig_drain(&rig);
	assert_int_equal(rig.entries.count, 40);
	assert_int_equal(rig.injections.count, 40);
	assert_int_equal(rig.exits.count, 41);
	for (uint32_t i = 0; i < 40; i++) {
		const struct vp_trace_kvm_exit *exit = &rig.exits.at[i];
		assert_int_equal(rig.entries.at[i].vcpu, 3 + i % 2);
		assert_int_equal(rig.entries.at[i].vm, getpid());
		assert_int_equal(rig.entries.at[i].tid, vp_own_tid());
		assert_int_equal(rig.injections.at[i].vector, 30 + i);
		assert_int_equal(exit->vcpu, 3 + i % 2);
		assert_int_equal(exit->vm, getpid());
		assert_int_equal(exit->tid, vp_own_tid());
		assert_int_equal(exit->reason, i % 3 ? 0x78 : 0x72);
		assert_int_equal(exit->guest_rip, 0xffffffff81000000 + i);
		assert_int_equal(exit->vendor, VP_VENDOR_AMD);
		assert_true(rig.entries.at[i].time <= exit->time);
	}
	assert_int_equal(rig.exits.at[40].reason, 0x7b);
	assert_int_equal(rig.exits.at[40].vcpu, 4);
	rig_close(&rig);
	fake_vcpu_free(&fakes[0]);
	fake_vcpu_free(&fakes[1]);
}

/* What the event of the exit says of it, on whatever pCPU the program will run. */
static void report_exit(const struct rig *rig, const struct vp_last_exit *now)
{
	int map = bpf_map__fd(rig->programs->maps.last_exit);

	for (uint32_t pcpu = 0; pcpu < (uint32_t)libbpf_num_possible_cpus(); pcpu++)
		assert_int_equal(bpf_map_update_elem(map, &pcpu, now, 0), 0);
}

/* On Intel, where the guest was is known if KVM has read it since the exit, and else not. */
static void test_kvm_of_intel(void **state)
{
	struct fake_vcpu fake;

	if (!fake_vcpu_make(&fake)) {
		print_message("skipped: this kernel does not describe KVM\n");
		skip();
	}
	struct rig rig = rig_open(VP_VENDOR_INTEL);
	fake_vcpu_reads_rip(&fake, 0xffffffff81000123, true);
	vp_run(rig.programs->progs.kvm_exit, fake.address, 1, 0);
	fake_vcpu_reads_rip(&fake, 0xffffffff81000456, false);
	vp_run(rig.programs->progs.kvm_exit, fake.address, 1, 0);
	vp_run(rig.programs->progs.kvm_exit, 10, fake.address, 0);
	report_exit(&rig,
		    &(struct vp_last_exit){
			.rip = 0x1234, .qualification = 0x70U << 16 | 8, .reason = 30, .known = 1});
	vp_run(rig.programs->progs.kvm_exit, fake.address, 1, 0);
	rig_drain(&rig);
	assert_int_equal(rig.exits.count, 4);
	assert_int_equal(rig.exits.at[0].detail_kind, VP_DETAIL_NONE);
	assert_int_equal(rig.exits.at[3].guest_rip, 0x1234);
	assert_int_equal(rig.exits.at[3].reason, 30);
	assert_int_equal(rig.exits.at[3].detail_kind, VP_DETAIL_PORT_IN);
	assert_int_equal(rig.exits.at[3].detail, 0x70);
	assert_int_equal(rig.exits.at[0].guest_rip, 0xffffffff81000123);
	assert_int_equal(rig.exits.at[1].guest_rip, 0);
	assert_int_equal(rig.exits.at[2].reason, 10);
	assert_int_equal(rig.exits.at[2].vendor, VP_VENDOR_INTEL);
	rig_close(&rig);
	fake_vcpu_free(&fake);
}

static void inject(const struct rig *rig, uint32_t vector)
{
	vp_run(rig->programs->progs.kvm_inj_virq, vector, 0, 0);
}

/* While another program is at work on the pCPU's pages. */
static void inject_aside(struct rig *rig, uint32_t vector)
{
	struct vp_trace_cpu *cpu = &rig->rings.cpus[vp_stay_here()];

	cpu->busy = 1;
	inject(rig, vector);
	assert_int_equal(cpu->busy, 1);
	cpu->busy = 0;
}

static void expect_injections(const struct rig *rig, size_t count)
{
	assert_int_equal(rig->injections.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rig->injections.at[i].vector, (uint16_t)i);
		assert_true(!i || rig->injections.at[i - 1].time <= rig->injections.at[i].time);
	}
}

/* What is written aside takes its place by its time; the last of it waits for what comes next. */
static void test_aside(void **state)
{
	enum { MANY = 4000 };
	struct rig rig = rig_open(VP_VENDOR_AMD);
	uint32_t pcpu = vp_stay_here();

	inject_aside(&rig, 0);
	inject(&rig, 1);
	inject_aside(&rig, 2);
	inject_aside(&rig, 3);
	inject(&rig, 4);
	inject_aside(&rig, 5);
	vp_trace_rings_drain(&rig.rings, false, take_of_rig, &rig);
	expect_injections(&rig, 5);
	vp_trace_rings_drain(&rig.rings, false, take_of_rig, &rig);
	expect_injections(&rig, 6);
	assert_int_equal(vp_trace_rings_lost(&rig.rings, pcpu), 0);
	for (uint32_t i = 6; i < MANY; i++)
		inject_aside(&rig, i);
	rig_drain(&rig);
	assert_true(rig.injections.count > 6 && rig.injections.count < MANY);
	expect_injections(&rig, rig.injections.count);
	assert_int_equal(vp_trace_rings_lost(&rig.rings, pcpu), MANY - rig.injections.count);
	rig_close(&rig);
}

/* Several times around the ring, with the reader anywhere in a page. */
static void test_pages(void **state)
{
	enum { ROUNDS = 11, EACH = 9999 };
	struct rig rig = rig_open(VP_VENDOR_AMD);

	for (uint32_t i = 0; i < ROUNDS * EACH; i++) {
		inject(&rig, i);
		if (i % EACH == EACH - 1)
			vp_trace_rings_drain(&rig.rings, false, take_of_rig, &rig);
	}
	expect_injections(&rig, (size_t)ROUNDS * EACH);
	assert_true(rig.rings.cpus[vp_stay_here()].head > 2 * RING);
	assert_int_equal(vp_trace_rings_lost(&rig.rings, vp_stay_here()), 0);
	rig_close(&rig);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switches_and_wakeups),
		cmocka_unit_test(test_begin_and_end),
		cmocka_unit_test(test_full_ring),
#if defined(__x86_64__)
		cmocka_unit_test(test_kvm),
		cmocka_unit_test(test_aside),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_kvm_of_intel),
#endif
	};

	if (!vp_kernel_takes_programs("the trace"))
		return VP_SKIPPED;
	pthread_setname_np(pthread_self(), "trace tester");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
