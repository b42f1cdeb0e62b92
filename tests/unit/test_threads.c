/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What threads of the host and of two guests did, who woke them, which of a guest's threads had a
 * vCPU, and what paths through that blame.
 */
#include "made_events.h"

#include "analyze/trace/critical.h"
#include "analyze/trace/guest_sched.h"
#include "render/render_table.h"

#define NAME "test_threads.rec"

enum { VM = 1000, VCPU0 = 1001, VCPU1 = 1002, OTHER_VM = 2000, OTHER_VCPU1 = 2002 };
enum { TASK = 20, THIEF = 50, WORKER = 7, SERVER = 8, CLIENT = 9 };

static const char *name_of(uint32_t tid)
{
	return tid == WORKER   ? "worker"
	       : tid == SERVER ? "server"
	       : tid == CLIENT ? "client"
			       : "idle";
}

static const struct vp_threads_options all = {.to = UINT64_MAX, .vm = "vm0", .others = true};
static struct vp_threads threads;

/* A guest has to have events for there to be threads. */
static void make_little_guest(const char *segment, const char *name)
{
	struct guest guest;

	guest_begin(&guest, NAME, segment, name);
	put_event(&guest, 1, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	guest_end(&guest);
}

static const struct vp_thread_segment *part_of(uint32_t vm, uint32_t tid, size_t number,
					       uint64_t begin, uint64_t end,
					       enum vp_thread_state state)
{
	const struct vp_thread *thread = vp_threads_find(&threads, vm, tid);

	assert_non_null(thread);
	assert_true(number < thread->segments.count);
	const struct vp_thread_segment *segment = &thread->segments.at[number];
	assert_int_equal(segment->begin, AT(begin));
	assert_int_equal(segment->end, AT(end));
	assert_int_equal(segment->state, state);
	return segment;
}

static void expect_waker(const struct vp_waker *waker, enum vp_waker_kind kind, uint32_t id,
			 uint32_t cpu)
{
	assert_int_equal(waker->kind, kind);
	assert_int_equal(waker->id, id);
	assert_int_equal(waker->cpu, cpu);
}

/* The first part of a thread that nothing was known of is its wait after that wake-up. */
static void expect_woken(uint32_t tid, enum vp_waker_kind kind, uint32_t id, uint32_t cpu)
{
	const struct vp_thread *thread = vp_threads_find(&threads, 0, tid);

	assert_non_null(thread);
	assert_int_equal(thread->segments.at[0].state, VP_THREAD_RUNNABLE);
	assert_true(thread->segments.at[0].woken);
	expect_waker(&thread->segments.at[0].waker, kind, id, cpu);
}

/* The innermost interrupt woke it; outside of all, the thread. */
static void test_wakers(void **state)
{
	struct made made;

	begin(&made, NAME, 2, 2);
	wake(&made, 1, 99, THIEF, 39, 0);
	PUT(&made, 0, 100, irq_handler_entry, .tid = TASK, .irq = 24);
	PUT(&made, 0, 101, local_timer_entry, .tid = TASK, .vector = 236);
	wake(&made, 0, 102, TASK, 30, 0);
	wake(&made, 1, 102, THIEF, 31, 0); /* another CPU */
	PUT(&made, 0, 103, local_timer_exit, .tid = TASK, .vector = 236);
	wake(&made, 0, 104, TASK, 32, 0);
	PUT(&made, 0, 105, irq_handler_exit, .tid = TASK, .irq = 24);
	wake(&made, 0, 106, TASK, 33, 0);
	wake(&made, 0, 107, 0, 34, 0);
	PUT(&made, 0, 108, irq_handler_exit, .tid = TASK, .irq = 24); /* one too many */
	wake(&made, 0, 109, TASK, 35, 1);
	PUT(&made, 0, 110, sched_wakeup_new, .tid = TASK, .woken_tid = 36, .target_cpu = 1);
	end(&made);
	make_little_guest("guest-vm0", "vm0");
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	expect_woken(30, VP_WAKER_TIMER, 0, 0);
	expect_woken(31, VP_WAKER_THREAD, THIEF, 1);
	expect_woken(32, VP_WAKER_DEVICE, 24, 0);
	expect_woken(33, VP_WAKER_THREAD, TASK, 0);
	expect_woken(34, VP_WAKER_UNKNOWN, 0, 0);
	expect_woken(35, VP_WAKER_THREAD, TASK, 0);
	assert_int_equal(vp_threads_find(&threads, 0, 35)->segments.at[0].cpu, 1);
	assert_null(vp_threads_find(&threads, 0, 37));
	assert_null(vp_threads_find(&threads, VM, 30));
	vp_threads_deinit(&threads);
}

/* More interrupts than are kept: the outer ones are. */
static void test_deep_interrupts(void **state)
{
	struct made made;

	begin(&made, NAME, 2, 2);
	for (uint32_t i = 0; i < 6; i++)
		PUT(&made, 0, 100 + i, irq_handler_entry, .tid = TASK, .irq = 24 + i);
	wake(&made, 0, 110, TASK, 30, 0);
	for (uint32_t i = 0; i < 3; i++)
		PUT(&made, 0, 111 + i, irq_handler_exit, .tid = TASK, .irq = 24 + i);
	wake(&made, 0, 120, TASK, 31, 0);
	wake(&made, 0, 121, TASK, 32, 0);
	end(&made);
	make_little_guest("guest-vm0", "vm0");
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	expect_woken(30, VP_WAKER_DEVICE, 27, 0);
	expect_woken(31, VP_WAKER_DEVICE, 24, 0);
	vp_threads_deinit(&threads);
}

/* Soft interrupts: of timers, of disks and nets, others; packets of this machine come in the time
 * of the thread that sent them. */
static void test_softirqs(void **state)
{
	static const struct {
		uint32_t vec, tid;
		uint64_t since; /* the last interrupt; 0: long ago */
		enum vp_waker_kind kind;
		uint32_t id;
	} cases[] = {{0, TASK, 0, VP_WAKER_SOFTIRQ, 0},      {1, TASK, 0, VP_WAKER_TIMER, 1},
		     {2, TASK, 0, VP_WAKER_THREAD, TASK},    {3, TASK, 0, VP_WAKER_THREAD, TASK},
		     {2, TASK, 5000, VP_WAKER_DEVICE, 2},    {3, TASK, 5000, VP_WAKER_DEVICE, 3},
		     {3, TASK, 5001, VP_WAKER_THREAD, TASK}, {3, 0, 0, VP_WAKER_DEVICE, 3},
		     {4, TASK, 0, VP_WAKER_DEVICE, 4},       {7, TASK, 0, VP_WAKER_SOFTIRQ, 7},
		     {8, TASK, 0, VP_WAKER_TIMER, 8},        {9, TASK, 0, VP_WAKER_SOFTIRQ, 9}};
	struct made made;

	begin(&made, NAME, 2, 2);
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		uint64_t now = 100000 * (i + 1);
		uint64_t since = cases[i].since ? cases[i].since : 50000;
		PUT(&made, 1, now - since - 1, irq_handler_entry, .tid = TASK, .irq = 24);
		PUT(&made, 1, now - since, irq_handler_exit, .tid = TASK, .irq = 24);
		PUT(&made, 1, now, softirq_entry, .tid = cases[i].tid, .vec = cases[i].vec);
		wake(&made, 1, now + 1, TASK, 30 + i, 0);
		PUT(&made, 1, now + 2, softirq_exit, .tid = cases[i].tid, .vec = cases[i].vec);
	}
	PUT(&made, 0, 2000000, irq_handler_entry, .tid = TASK, .irq = 24);
	PUT(&made, 0, 2000010, softirq_entry, .tid = TASK, .vec = 3); /* within an interrupt */
	wake(&made, 0, 2000011, TASK, 60, 0);
	wake(&made, 0, 2000012, TASK, 61, 0);
	end(&made);
	make_little_guest("guest-vm0", "vm0");
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		expect_woken(30 + i, cases[i].kind, cases[i].id, 1);
	expect_woken(60, VP_WAKER_DEVICE, 3, 0);
	vp_threads_deinit(&threads);
}

static void make_parts(void)
{
	struct made made;

	begin(&made, NAME, 2, 2);
	put_name(&made, TASK, "task");
	change(&made, 0, 10, 0, TASK, 0);
	change(&made, 0, 20, TASK, THIEF, 0); /* runnable */
	change(&made, 0, 30, THIEF, TASK, SLEEPS);
	PUT(&made, 0, 40, sched_switch, .prev_tid = TASK, .prev_state = SLEEPS, .preempted = 1);
	change(&made, 1, 50, 0, TASK, 0);
	change(&made, 1, 60, TASK, 0, SLEEPS);
	wake(&made, 0, 70, THIEF, TASK, 0);
	wake(&made, 1, 72, 99, TASK, 1); /* it is awake already: only its CPU is news */
	change(&made, 1, 80, 0, TASK, 0);
	wake(&made, 0, 85, 99, TASK, 0); /* nothing to one that runs */
	change(&made, 1, 90, 0, 0, 0);
	end(&made);
	make_little_guest("guest-vm0", "vm0");
}

static void test_parts(void **state)
{
	const struct vp_thread_segment *segment;

	make_parts();
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	assert_int_equal(vp_threads_find(&threads, 0, TASK)->segments.count, 8);
	assert_string_equal(vp_threads_find(&threads, 0, TASK)->comm, "task");
	assert_null(vp_threads_find(&threads, 0, THIEF)->comm);
	segment = part_of(0, TASK, 0, 10, 20, VP_THREAD_RUNNING);
	assert_true(segment->ended && segment->cpu == 0);
	segment = part_of(0, TASK, 1, 20, 30, VP_THREAD_RUNNABLE);
	assert_false(segment->woken);
	part_of(0, TASK, 2, 30, 40, VP_THREAD_RUNNING);
	segment = part_of(0, TASK, 3, 40, 50, VP_THREAD_RUNNABLE);
	assert_false(segment->woken);
	segment = part_of(0, TASK, 4, 50, 60, VP_THREAD_RUNNING);
	assert_int_equal(segment->cpu, 1);
	segment = part_of(0, TASK, 5, 60, 70, VP_THREAD_ASLEEP);
	expect_waker(&segment->waker, VP_WAKER_THREAD, THIEF, 0);
	segment = part_of(0, TASK, 6, 70, 80, VP_THREAD_RUNNABLE);
	assert_true(segment->woken && segment->cpu == 1);
	expect_waker(&segment->waker, VP_WAKER_THREAD, THIEF, 0);
	segment = part_of(0, TASK, 7, 80, 90, VP_THREAD_RUNNING);
	assert_false(segment->ended); /* it goes on */
	part_of(0, THIEF, 0, 20, 30, VP_THREAD_RUNNING);
	segment = part_of(0, THIEF, 1, 30, 90, VP_THREAD_ASLEEP);
	assert_false(segment->ended);
	/* Where a time is among the parts. */
	const struct vp_thread *task = vp_threads_find(&threads, 0, TASK);
	assert_int_equal(vp_thread_segment_before(task, AT(10)), 0);
	assert_int_equal(vp_thread_segment_before(task, AT(11)), 1);
	assert_int_equal(vp_thread_segment_before(task, AT(20)), 1);
	assert_int_equal(vp_thread_segment_before(task, AT(21)), 2);
	assert_int_equal(vp_thread_segment_before(task, AT(500)), 8);
	assert_string_equal(vp_threads_name(&threads, "x", 5), "x/5");
	assert_string_equal(vp_threads_name(&threads, NULL, 6), "-/6");
	vp_threads_deinit(&threads);
}

/* Parts are whole, if some of them is in the time. */
static void test_times(void **state)
{
	struct vp_threads_options some = all;

	make_parts();
	some.from = AT(30);
	some.to = AT(60);
	expect_no_error(vp_threads_open(NAME, &some, &threads));
	assert_int_equal(vp_threads_find(&threads, 0, TASK)->segments.count, 3);
	part_of(0, TASK, 0, 30, 40, VP_THREAD_RUNNING);
	part_of(0, TASK, 2, 50, 60, VP_THREAD_RUNNING);
	part_of(0, THIEF, 0, 30, 90, VP_THREAD_ASLEEP);
	vp_threads_deinit(&threads);
	some.from = AT(29);
	some.to = AT(61);
	expect_no_error(vp_threads_open(NAME, &some, &threads));
	assert_int_equal(vp_threads_find(&threads, 0, TASK)->segments.count, 5);
	part_of(0, TASK, 0, 20, 30, VP_THREAD_RUNNABLE);
	part_of(0, TASK, 4, 60, 70, VP_THREAD_ASLEEP);
	vp_threads_deinit(&threads);
}

/*
 * vCPU 0 of vm0 runs worker, is preempted by a thief for 50 ns, and goes on; vCPU 1 of vm1 runs
 * another worker of the same number. vm0's vCPU 1 runs the server, which worker waits for.
 */
static void make_two_guests(void)
{
	struct guest guest;
	struct made made;

	begin(&made, NAME, 2, 3);
	put_name(&made, THIEF, "thief");
	put_name(&made, TASK, "task");
	change(&made, 0, 10, 0, VCPU0, 0);
	change(&made, 1, 10, 0, VCPU1, 0);
	change(&made, 2, 10, 0, OTHER_VCPU1, 0);
	PUT(&made, 0, 20, kvm_entry, .tid = VCPU0, .vm = VM, .vcpu = 0);
	PUT(&made, 1, 20, kvm_entry, .tid = VCPU1, .vm = VM, .vcpu = 1);
	PUT(&made, 2, 20, kvm_entry, .tid = OTHER_VCPU1, .vm = OTHER_VM, .vcpu = 1);
	PUT(&made, 1, 120, kvm_exit, .tid = VCPU1, .vm = VM, .vcpu = 1, .reason = MADE_INTR,
	    .vendor = VP_VENDOR_AMD);
	change(&made, 1, 125, VCPU1, THIEF, 0);
	change(&made, 1, 145, THIEF, TASK, SLEEPS);
	change(&made, 1, 150, TASK, VCPU1, SLEEPS);
	PUT(&made, 1, 160, kvm_entry, .tid = VCPU1, .vm = VM, .vcpu = 1);
	PUT(&made, 0, 400, kvm_exit, .tid = VCPU0, .vm = VM, .vcpu = 0, .reason = MADE_INTR,
	    .vendor = VP_VENDOR_AMD);
	PUT(&made, 1, 400, kvm_exit, .tid = VCPU1, .vm = VM, .vcpu = 1, .reason = MADE_INTR,
	    .vendor = VP_VENDOR_AMD);
	PUT(&made, 2, 400, kvm_exit, .tid = OTHER_VCPU1, .vm = OTHER_VM, .vcpu = 1,
	    .reason = MADE_INTR, .vendor = VP_VENDOR_AMD);
	end(&made);
	guest_begin(&guest, NAME, "guest-vm0", "vm0");
	put_event_on(&guest, 0, 30, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event_on(&guest, 1, 40, SWITCH, (const uint32_t[]){0, 0, 0, CLIENT});
	put_event_on(&guest, 0, 90, WAKING, (const uint32_t[]){WORKER, SERVER, 120, 1});
	put_event_on(&guest, 0, 95, WAKEUP, (const uint32_t[]){0, SERVER, 120, 1});
	put_event_on(&guest, 0, 100, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, 0});
	put_event_on(&guest, 1, 110, SWITCH, (const uint32_t[]){CLIENT, CLIENT, 0x100, SERVER});
	put_event_on(&guest, 1, 200, WAKING, (const uint32_t[]){SERVER, WORKER, 120, 0});
	put_event_on(&guest, 0, 210, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event_on(&guest, 1, 220, SWITCH, (const uint32_t[]){SERVER, SERVER, SLEEPS, CLIENT});
	put_event_on(&guest, 0, 300, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, 0});
	guest_end(&guest);
	guest_begin(&guest, NAME, "guest-vm1", "vm1");
	put_event_on(&guest, 1, 35, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event_on(&guest, 1, 135, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, SERVER});
	guest_end(&guest);
}

static void test_guests(void **state)
{
	const struct vp_thread_segment *segment;

	make_two_guests();
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	assert_int_equal(vp_threads_find(&threads, VM, WORKER)->segments.count, 4);
	part_of(VM, WORKER, 0, 30, 100, VP_THREAD_RUNNING);
	segment = part_of(VM, WORKER, 1, 100, 200, VP_THREAD_ASLEEP);
	expect_waker(&segment->waker, VP_WAKER_THREAD, SERVER, 1);
	segment = part_of(VM, WORKER, 2, 200, 210, VP_THREAD_RUNNABLE);
	assert_true(segment->woken);
	segment = part_of(VM, SERVER, 0, 90, 110, VP_THREAD_RUNNABLE);
	assert_int_equal(segment->cpu, 1);
	expect_waker(&segment->waker, VP_WAKER_THREAD, WORKER, 0); /* not who was there later */
	segment = part_of(VM, SERVER, 1, 110, 220, VP_THREAD_RUNNING);
	assert_int_equal(segment->cpu, 1);
	segment = part_of(VM, CLIENT, 1, 110, 220, VP_THREAD_RUNNABLE);
	assert_false(segment->woken);
	assert_string_equal(vp_threads_find(&threads, VM, WORKER)->comm, "worker");
	assert_int_equal(vp_threads_find(&threads, OTHER_VM, WORKER)->segments.count, 1);
	segment = part_of(OTHER_VM, WORKER, 0, 35, 135, VP_THREAD_RUNNING);
	assert_int_equal(segment->cpu, 1);
	assert_null(vp_threads_find(&threads, OTHER_VM, CLIENT));
	/* Without others, only the guest that is asked for. */
	vp_threads_deinit(&threads);
	const struct vp_threads_options one = {.to = UINT64_MAX, .vm = "vm1"};
	expect_no_error(vp_threads_open(NAME, &one, &threads));
	assert_null(vp_threads_find(&threads, VM, WORKER));
	part_of(OTHER_VM, WORKER, 0, 35, 135, VP_THREAD_RUNNING);
	vp_threads_deinit(&threads);
}

static uint32_t inside(uint32_t tid, uint64_t ns)
{
	const struct vp_thread *thread =
	    vp_threads_inside(&threads, vp_threads_find(&threads, 0, tid), AT(ns));

	return thread ? thread->tid : 0;
}

/* Which thread of its guest a vCPU's thread runs, and what vCPUs did meanwhile. */
static void test_vcpus(void **state)
{
	make_two_guests();
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	assert_int_equal(inside(VCPU0, 29), 0);
	assert_int_equal(inside(VCPU0, 30), WORKER);
	assert_int_equal(inside(VCPU0, 99), WORKER);
	assert_int_equal(inside(VCPU0, 100), 0); /* its idle task */
	assert_int_equal(inside(VCPU0, 210), WORKER);
	assert_int_equal(inside(VCPU1, 109), CLIENT);
	assert_int_equal(inside(VCPU1, 110), SERVER);
	assert_int_equal(inside(OTHER_VCPU1, 140), SERVER);
	assert_int_equal(
	    vp_threads_inside(&threads, vp_threads_find(&threads, 0, OTHER_VCPU1), AT(140))->vm,
	    OTHER_VM);
	assert_int_equal(inside(THIEF, 130), 0); /* no vCPU's */
	assert_null(vp_threads_inside(&threads, vp_threads_find(&threads, VM, WORKER), AT(50)));
	const struct vp_cpu *cpu = vp_threads_cpu(&threads, VM, 1);
	assert_int_equal(cpu->tid, VCPU1);
	static const struct {
		uint64_t begin, end;
		enum vp_track_state state;
		uint32_t tid;
	} segments[] = {{10, 20, VP_TRACK_WORK, 0},           {20, 120, VP_TRACK_GUEST, 0},
			{120, 125, VP_TRACK_WORK, 0},         {125, 145, VP_TRACK_PREEMPTED, THIEF},
			{145, 150, VP_TRACK_PREEMPTED, TASK}, {150, 160, VP_TRACK_WORK, 0},
			{160, 400, VP_TRACK_GUEST, 0}};
	assert_int_equal(cpu->segments.count, VP_ARRAY_SIZE(segments));
	for (size_t i = 0; i < VP_ARRAY_SIZE(segments); i++) {
		assert_int_equal(cpu->segments.at[i].begin, AT(segments[i].begin));
		assert_int_equal(cpu->segments.at[i].end, AT(segments[i].end));
		assert_int_equal(cpu->segments.at[i].state, segments[i].state);
		assert_int_equal(cpu->segments.at[i].has_tid, segments[i].tid != 0);
		assert_int_equal(cpu->segments.at[i].tid, segments[i].tid);
	}
	assert_int_equal(vp_cpu_segment_before(cpu, AT(125)), 3);
	assert_int_equal(vp_cpu_segment_before(cpu, AT(126)), 4);
	cpu = vp_threads_cpu(&threads, 0, 1); /* the pCPU */
	assert_int_equal(cpu->segments.at[1].tid, THIEF);
	assert_string_equal(cpu->segments.at[1].comm, "thief");
	assert_null(vp_threads_cpu(&threads, OTHER_VM, 0));
	vp_threads_deinit(&threads);
}

/* Turns before the time are known by the last of them only. */
static void test_turns_before(void **state)
{
	struct vp_threads_options some = all;

	make_two_guests();
	some.from = AT(115);
	some.to = AT(215);
	expect_no_error(vp_threads_open(NAME, &some, &threads));
	assert_int_equal(vp_threads_cpu(&threads, VM, 1)->slices.count, 1);
	assert_int_equal(vp_threads_cpu(&threads, VM, 1)->slices.at[0].tid, SERVER);
	assert_int_equal(vp_threads_cpu(&threads, VM, 0)->slices.count, 2);
	assert_int_equal(vp_threads_cpu(&threads, VM, 0)->slices.at[0].begin, AT(100));
	vp_threads_deinit(&threads);
}

static void expect_path(const struct vp_threads_options *options, const char *vm, const char *word,
			const char *expected)
{
	const struct vp_thread *thread;
	struct vp_buffer out = {0};
	struct vp_table table = {0};
	struct vp_critical path;

	expect_no_error(vp_threads_open(NAME, options, &threads));
	expect_no_error(vp_critical_choose(&threads, vm, word, &thread));
	expect_no_error(vp_critical_find(&threads, thread, &path));
	vp_critical_chain_table(&path, &table);
	vp_render_table_csv(&table, false, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
	vp_critical_deinit(&path);
	vp_threads_deinit(&threads);
}

/* The worker waits for the server, whose vCPU is not in its guest for a while: for the hypervisor,
 * then for others on its pCPU. */
static void test_stolen_path(void **state)
{
	const struct vp_threads_options other = {.to = UINT64_MAX, .vm = "vm1"};

	make_two_guests();
	expect_path(&all, "vm0", "worker",
		    "1.000000030,70,guest,vm0,worker/7,\n"
		    "1.000000100,10,guest-queue,vm0,server/8,\n"
		    "1.000000110,10,guest,vm0,server/8,\n"
		    "1.000000120,5,hypervisor,vm0,server/8,\n"
		    "1.000000125,20,stolen,vm0,server/8,thief/50\n"
		    "1.000000145,5,stolen,vm0,server/8,task/20\n"
		    "1.000000150,10,hypervisor,vm0,server/8,\n"
		    "1.000000160,40,guest,vm0,server/8,\n"
		    "1.000000200,10,guest-queue,vm0,worker/7,\n"
		    "1.000000210,90,guest,vm0,worker/7,\n");
	expect_path(&other, "vm1", "7", "1.000000035,100,guest,vm1,worker/7,\n");
}

/* Nothing is known of the thread that woke it, or of what the idle task did. */
static void test_unknown_wakers(void **state)
{
	struct guest guest;
	struct made made;

	begin(&made, NAME, 2, 2);
	change(&made, 0, 10, 0, VCPU0, 0);
	PUT(&made, 0, 20, kvm_entry, .tid = VCPU0, .vm = VM, .vcpu = 0);
	PUT(&made, 0, 400, kvm_exit, .tid = VCPU0, .vm = VM, .vcpu = 0, .reason = MADE_INTR,
	    .vendor = VP_VENDOR_AMD);
	end(&made);
	guest_begin(&guest, NAME, "guest-vm0", "vm0");
	put_event(&guest, 30, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event(&guest, 50, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, 0});
	put_event(&guest, 80, WAKING, (const uint32_t[]){77, WORKER, 120, 0});
	put_event(&guest, 90, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event(&guest, 120, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, 0});
	put_event(&guest, 150, WAKING, (const uint32_t[]){0, WORKER, 120, 0});
	put_event(&guest, 165, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event(&guest, 200, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, 0});
	guest_end(&guest);
	expect_path(&all, "vm0", "worker",
		    "1.000000030,20,guest,vm0,worker/7,\n"
		    "1.000000050,30,unknown,vm0,worker/7,its waker is unknown\n"
		    "1.000000080,10,guest-queue,vm0,worker/7,\n"
		    "1.000000090,30,guest,vm0,worker/7,\n"
		    "1.000000120,30,unknown,vm0,worker/7,no event for the wakeup\n"
		    "1.000000150,15,guest-queue,vm0,worker/7,\n"
		    "1.000000165,35,guest,vm0,worker/7,\n");
}

/* In a guest: the innermost interrupt, the kinds of soft interrupts, calls of other CPUs. */
static void test_guest_wakers(void **state)
{
	struct guest guest;
	struct made made;

	begin(&made, NAME, 2, 2);
	change(&made, 0, 10, 0, VCPU0, 0);
	end(&made);
	guest_begin(&guest, NAME, "guest-vm0", "vm0");
	put_event(&guest, 100, IRQ_ENTRY, (const uint32_t[]){0, 5});
	put_event(&guest, 101, TIMER_ENTRY, (const uint32_t[]){0, 236});
	put_event(&guest, 102, WAKING, (const uint32_t[]){9, 30, 120, 1});
	put_event(&guest, 103, TIMER_EXIT, (const uint32_t[]){0, 236});
	put_event(&guest, 104, WAKEUP, (const uint32_t[]){9, 31, 120, 0});
	put_event(&guest, 105, IRQ_EXIT, (const uint32_t[]){0, 5});
	put_event(&guest, 106, WAKEUP_NEW, (const uint32_t[]){9, 32, 120, 0});
	put_event(&guest, 107, CALL_ENTRY, (const uint32_t[]){9, 251});
	put_event(&guest, 108, WAKING, (const uint32_t[]){9, 33, 120, 0});
	put_event(&guest, 109, CALL_EXIT, (const uint32_t[]){9, 251});
	put_event(&guest, 110, WAKING, (const uint32_t[]){9, 34, 120, 0});
	put_event(&guest, 111, SOFTIRQ_ENTRY, (const uint32_t[]){9, 1});
	put_event(&guest, 112, WAKING, (const uint32_t[]){9, 35, 120, 0});
	put_event(&guest, 113, SOFTIRQ_EXIT, (const uint32_t[]){9, 1});
	put_event(&guest, 7000, SOFTIRQ_ENTRY, (const uint32_t[]){9, 3});
	put_event(&guest, 7001, WAKING, (const uint32_t[]){77, 36, 120, 0});
	put_event(&guest, 7002, SOFTIRQ_EXIT, (const uint32_t[]){9, 3});
	put_event(&guest, 7003, WAKING, (const uint32_t[]){0, 37, 120, 0});
	put_event(&guest, 7004, WAKING, (const uint32_t[]){0, 38, 120, 0});
	guest_end(&guest);
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	static const struct {
		enum vp_waker_kind kind;
		uint32_t id;
	} wakers[] = {{VP_WAKER_TIMER, 0},   {VP_WAKER_DEVICE, 5}, {VP_WAKER_THREAD, 9},
		      {VP_WAKER_UNKNOWN, 0}, {VP_WAKER_THREAD, 9}, {VP_WAKER_TIMER, 1},
		      {VP_WAKER_THREAD, 9},  {VP_WAKER_UNKNOWN, 0}};
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(wakers); i++) {
		const struct vp_thread *thread = vp_threads_find(&threads, VM, 30 + i);
		assert_non_null(thread);
		assert_true(thread->segments.at[0].woken);
		expect_waker(&thread->segments.at[0].waker, wakers[i].kind, wakers[i].id, 0);
		assert_int_equal(thread->segments.at[0].cpu, i == 0);
	}
	vp_threads_deinit(&threads);
}

static void expect_rows(void (*make)(struct vp_guest_sched *, struct vp_table *),
			struct vp_guest_sched *sums, const char *expected)
{
	struct vp_buffer out = {0};
	struct vp_table table = {0};

	make(sums, &table);
	vp_render_table_csv(&table, false, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

static void put_wakeups(struct vp_guest_sched *sums, struct vp_table *table)
{
	vp_guest_sched_wakeup_table(sums, table);
}

/* Where the guests' threads' time went: on a vCPU, for its hypervisor, for others in the guest, for
 * those on its pCPU. */
static void test_sums(void **state)
{
	struct vp_guest_sched sums = {.threads = &threads, .max_worst = 5};

	make_two_guests();
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	vp_guest_sched_sum(&sums);
	expect_rows(vp_guest_sched_thread_table, &sums,
		    "vm0,9,client,150,0,85,25,0,20,thief/50,0\n"
		    "vm0,7,worker,160,0,10,0,100,0,,0\n"
		    "vm0,8,server,70,15,20,25,80,20,thief/50,15\n"
		    "vm1,7,worker,100,0,0,0,0,0,,0\n");
	expect_rows(put_wakeups, &sums, "8,1,0,0,1\n16,1,0,0,1\n");
	expect_rows(vp_guest_sched_worst_table, &sums,
		    "vm0,8,server,20,0,0,20,1.000000090,worker/7\n"
		    "vm0,7,worker,10,0,0,10,1.000000200,server/8\n");
	vp_guest_sched_deinit(&sums);
	sums = (struct vp_guest_sched){.threads = &threads, .max_worst = 1};
	vp_guest_sched_sum(&sums);
	expect_rows(vp_guest_sched_worst_table, &sums,
		    "vm0,8,server,20,0,0,20,1.000000090,worker/7\n");
	vp_guest_sched_deinit(&sums);
	vp_threads_deinit(&threads);
}

/* The worker's vCPU has halted when vCPU 1's server wakes the worker: 10 ns until the vCPU is
 * woken, 20 until it has a pCPU, 20 until the guest has switched. */
static void test_wakeup_of_halted_vcpu(void **state)
{
	struct vp_guest_sched sums = {.threads = &threads, .max_worst = 1};
	struct guest guest;
	struct made made;

	begin(&made, NAME, 2, 2);
	change(&made, 0, 10, 0, VCPU0, 0);
	change(&made, 1, 10, 0, VCPU1, 0);
	PUT(&made, 0, 20, kvm_entry, .tid = VCPU0, .vm = VM, .vcpu = 0);
	PUT(&made, 1, 20, kvm_entry, .tid = VCPU1, .vm = VM, .vcpu = 1);
	PUT(&made, 0, 105, kvm_exit, .tid = VCPU0, .vm = VM, .vcpu = 0, .reason = MADE_HLT,
	    .vendor = VP_VENDOR_AMD);
	change(&made, 0, 110, VCPU0, 0, SLEEPS);
	wake(&made, 1, 210, VCPU1, VCPU0, 0);
	change(&made, 0, 230, 0, VCPU0, 0);
	PUT(&made, 0, 240, kvm_entry, .tid = VCPU0, .vm = VM, .vcpu = 0);
	PUT(&made, 0, 400, kvm_exit, .tid = VCPU0, .vm = VM, .vcpu = 0, .reason = MADE_INTR,
	    .vendor = VP_VENDOR_AMD);
	PUT(&made, 1, 400, kvm_exit, .tid = VCPU1, .vm = VM, .vcpu = 1, .reason = MADE_INTR,
	    .vendor = VP_VENDOR_AMD);
	end(&made);
	guest_begin(&guest, NAME, "guest-vm0", "vm0");
	put_event_on(&guest, 0, 30, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event_on(&guest, 1, 30, SWITCH, (const uint32_t[]){0, 0, 0, SERVER});
	put_event_on(&guest, 0, 100, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, 0});
	put_event_on(&guest, 1, 200, WAKING, (const uint32_t[]){SERVER, WORKER, 120, 0});
	put_event_on(&guest, 0, 250, SWITCH, (const uint32_t[]){0, 0, 0, WORKER});
	put_event_on(&guest, 1, 300, SWITCH, (const uint32_t[]){SERVER, SERVER, SLEEPS, 0});
	put_event_on(&guest, 0, 300, SWITCH, (const uint32_t[]){WORKER, WORKER, SLEEPS, 0});
	guest_end(&guest);
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	vp_guest_sched_sum(&sums);
	expect_rows(vp_guest_sched_worst_table, &sums,
		    "vm0,7,worker,50,20,10,20,1.000000200,server/8\n");
	vp_guest_sched_deinit(&sums);
	vp_threads_deinit(&threads);
}

static void test_no_guests(void **state)
{
	const struct vp_threads_options any = {.to = UINT64_MAX};
	const struct vp_threads_options nobody = {.to = UINT64_MAX, .vm = "vm5"};
	vp_vms vms = {0};
	struct made made;

	begin(&made, NAME, 2, 2);
	change(&made, 0, 10, 0, TASK, 0);
	end(&made);
	for (uint32_t i = 0; i < 2; i++)
		vp_vec_push(&vms,
			    ((struct vp_vm){.pid = 1000 * (i + 1), .name = vp_format("vm%u", i)}));
	expect_error(vp_threads_open(NAME, &any, &threads), "no events of guests");
	expect_error(vp_threads_open(NAME, &nobody, &threads), "no VM 'vm5'");
	assert_false(vp_guest_traces_any(NAME, &vms, NULL));
	make_little_guest("guest-vm1", "vm1");
	expect_error(vp_threads_open(NAME, &all, &threads), "no events of guest 'vm0'");
	assert_true(vp_guest_traces_any(NAME, &vms, NULL));
	assert_true(vp_guest_traces_any(NAME, &vms, "vm1"));
	assert_false(vp_guest_traces_any(NAME, &vms, "vm0"));
	expect_no_error(vp_threads_open(NAME, &any, &threads));
	assert_non_null(vp_threads_find(&threads, OTHER_VM, WORKER));
	vp_threads_deinit(&threads);
	vp_vms_deinit(&vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_wakers),
	    cmocka_unit_test(test_deep_interrupts),
	    cmocka_unit_test(test_softirqs),
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_times),
	    cmocka_unit_test(test_guests),
	    cmocka_unit_test(test_vcpus),
	    cmocka_unit_test(test_turns_before),
	    cmocka_unit_test(test_stolen_path),
	    cmocka_unit_test(test_unknown_wakers),
	    cmocka_unit_test(test_wakeup_of_halted_vcpu),
	    cmocka_unit_test(test_guest_wakers),
	    cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_no_guests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
