/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums over periods of two VMs' vCPUs: whose time, which thread's, and for whom a wait was. */
#include "unit.h"

#include "analyze/trace/sched.h"
#include "analyze/trace/track_states.h"
#include "bpf/account_abi.h"
#include "render/render_table.h"

struct vp_tracks;
const char *__wrap_vp_tracks_vm(struct vp_tracks *tracks, uint32_t vm);
struct vp_track_switches __wrap_vp_tracks_switches(const struct vp_tracks *tracks, uint32_t vm,
						   uint32_t vcpu, uint32_t tid);
const char *__wrap_vp_tracks_host_thread(struct vp_tracks *tracks, uint32_t tid, const char *comm);

enum { FIRST = 1000, SECOND = 2000, THIEF = 50, OTHER = 60 };

/* In place of a recording's. */
const char *__wrap_vp_tracks_vm(struct vp_tracks *tracks, uint32_t vm)
{
	return vm == 1000 ? "alpha" : "beta";
}

struct vp_track_switches __wrap_vp_tracks_switches(const struct vp_tracks *tracks, uint32_t vm,
						   uint32_t vcpu, uint32_t tid)
{
	return vm == 1000
		   ? (struct vp_track_switches){0}
		   : (struct vp_track_switches){
			 .total = tid, .observed = vcpu + 7, .implausible = 3, .restarts = 1};
}

const char *__wrap_vp_tracks_host_thread(struct vp_tracks *tracks, uint32_t tid, const char *comm)
{
	return tid == OTHER ? "vCPU 0 of VM beta" : "thief/50";
}

static struct vp_sched sums;

static int setup(void **state)
{
	sums = (struct vp_sched){.max_waits = 10};
	return 0;
}

static int teardown(void **state)
{
	vp_sched_deinit(&sums);
	return 0;
}

static struct vp_track_slice slice_of(uint32_t vm, uint32_t vcpu, enum vp_track_state state,
				      uint64_t begin, uint64_t end)
{
	return (struct vp_track_slice){.track = VP_TRACK_VCPU,
				       .state = state,
				       .begin = begin,
				       .end = end,
				       .tid = vm + vcpu + 1,
				       .has_vcpu = true,
				       .vm = vm,
				       .vcpu = vcpu};
}

static void take(uint32_t vm, uint32_t vcpu, enum vp_track_state state, uint64_t begin,
		 uint64_t end)
{
	const struct vp_track_slice slice = slice_of(vm, vcpu, state, begin, end);

	vp_sched_take(&sums, &slice);
}

static void take_of_thread(uint32_t vm, uint32_t vcpu, enum vp_track_state state, uint64_t ns,
			   uint32_t tid, enum vp_track_certainty certainty)
{
	struct vp_track_slice slice = slice_of(vm, vcpu, state, 100, 100 + ns);

	slice.has_guest = true;
	slice.guest_tid = tid;
	slice.guest_pid = tid + 1;
	slice.guest_comm = "thread";
	slice.certainty = certainty;
	vp_sched_take(&sums, &slice);
}

/* A part of a wait that began at `since`, while that thread had the pCPU (0: nobody known). */
static void wait_for(uint32_t vm, uint32_t vcpu, enum vp_track_state state, uint64_t since,
		     uint64_t begin, uint64_t end, uint32_t thief, bool ends)
{
	struct vp_track_slice slice = slice_of(vm, vcpu, state, begin, end);

	slice.wait_begin = since;
	slice.wait_ends = ends;
	slice.has_thief = thief != 0;
	slice.thief_tid = thief;
	slice.thief_comm = thief == THIEF ? "thief" : "other";
	vp_sched_take(&sums, &slice);
}

static void test_vcpus(void **state)
{
	static const enum vp_track_state states[] = {VP_TRACK_GUEST,     VP_TRACK_WORK,
						     VP_TRACK_PREEMPTED, VP_TRACK_WAKING,
						     VP_TRACK_HALTED,    VP_TRACK_WAITING};

	for (uint64_t round = 0; round < 2; round++)
		for (uint32_t vm = FIRST; vm <= SECOND; vm += 1000)
			for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
				for (uint64_t i = 0; i < VP_ARRAY_SIZE(states); i++)
					take(vm, vcpu, states[i], 7, 7 + vm + 10 * vcpu + i);
	const struct vp_track_slice other = {.track = VP_TRACK_PCPU, .end = 5, .vm = 3000};
	vp_sched_take(&sums, &other); /* of a pCPU */
	assert_int_equal(sums.vcpus.count, 4);
	for (uint32_t at = 0; at < 4; at++) {
		const struct vp_sched_vcpu *vcpu = &sums.vcpus.at[at];
		assert_int_equal(vcpu->vm, at < 2 ? FIRST : SECOND);
		assert_int_equal(vcpu->vcpu, at % 2);
		assert_int_equal(vcpu->tid, vcpu->vm + vcpu->vcpu + 1);
		for (uint64_t i = 0; i < VP_ARRAY_SIZE(states); i++)
			assert_int_equal(vcpu->ns[states[i]], 2 * (vcpu->vm + 10 * vcpu->vcpu + i));
		assert_int_equal(vcpu->unknown, vcpu->ns[VP_TRACK_GUEST]);
		assert_int_equal(vcpu->exact + vcpu->uncertain, 0);
	}
}

/* vCPUs whose numbers are not known are told apart by their threads. */
static void test_unknown_numbers(void **state)
{
	for (uint32_t tid = 5; tid < 8; tid++) {
		struct vp_track_slice slice =
		    slice_of(FIRST, VP_VCPU_UNKNOWN, VP_TRACK_GUEST, 0, tid);
		slice.tid = tid;
		vp_sched_take(&sums, &slice);
	}
	assert_int_equal(sums.vcpus.count, 3);
	assert_int_equal(sums.vcpus.at[1].tid, 6);
	assert_int_equal(sums.vcpus.at[1].ns[VP_TRACK_GUEST], 6);
}

static void test_threads(void **state)
{
	take_of_thread(FIRST, 0, VP_TRACK_GUEST, 1, 7, VP_TRACK_EXACT);
	take_of_thread(FIRST, 0, VP_TRACK_GUEST, 20, 7, VP_TRACK_UNCERTAIN);
	take_of_thread(FIRST, 0, VP_TRACK_WORK, 300, 7, VP_TRACK_UNKNOWN);
	take_of_thread(FIRST, 0, VP_TRACK_PREEMPTED, 4000, 7, VP_TRACK_UNKNOWN);
	take_of_thread(FIRST, 0, VP_TRACK_WAKING, 50000, 7, VP_TRACK_UNKNOWN);
	take_of_thread(FIRST, 0, VP_TRACK_HALTED, 600000, 7, VP_TRACK_UNKNOWN);
	take_of_thread(FIRST, 0, VP_TRACK_WAITING, 600000, 7, VP_TRACK_UNKNOWN);
	take_of_thread(FIRST, 1, VP_TRACK_GUEST, 2, 7, VP_TRACK_EXACT);
	take_of_thread(SECOND, 0, VP_TRACK_GUEST, 3, 7, VP_TRACK_EXACT);
	take_of_thread(FIRST, 0, VP_TRACK_GUEST, 4, 8, VP_TRACK_EXACT);
	take(FIRST, 0, VP_TRACK_GUEST, 0, 9); /* nobody known */
	take_of_thread(FIRST, 0, VP_TRACK_GUEST, 1, 1 << 22,
		       VP_TRACK_EXACT); /* no number of Linux */
	assert_int_equal(sums.left_out, 1);
	assert_int_equal(sums.threads.count, 4);
	const struct vp_sched_thread *thread = sums.threads.at;
	assert_int_equal(thread->exact, 1);
	assert_int_equal(thread->uncertain, 20);
	assert_int_equal(thread->host, 300);
	assert_int_equal(thread->stolen, 54000);
	assert_int_equal(thread->tid, 7);
	assert_int_equal(thread->pid, 8);
	assert_string_equal(thread->comm, "thread");
	assert_int_equal(thread[1].vcpu, 1);
	assert_int_equal(thread[1].exact, 2);
	assert_int_equal(thread[2].vcpu, 2);
	assert_int_equal(thread[2].exact, 3);
	assert_int_equal(thread[3].vcpu, 0);
	assert_int_equal(thread[3].tid, 8);
	assert_int_equal(thread[3].exact, 4);
	assert_int_equal(sums.vcpus.at[0].exact, 6);
	assert_int_equal(sums.vcpus.at[0].uncertain, 20);
	assert_int_equal(sums.vcpus.at[0].unknown, 9);
}

/* A wait is for who had the pCPU for the longest of it, whoever was last; the next wait anew. */
static void test_waits(void **state)
{
	wait_for(FIRST, 0, VP_TRACK_PREEMPTED, 100, 100, 140, THIEF, false);
	wait_for(SECOND, 1, VP_TRACK_PREEMPTED, 90, 90, 95, OTHER, false);
	wait_for(FIRST, 0, VP_TRACK_PREEMPTED, 100, 140, 160, OTHER, true);
	wait_for(SECOND, 1, VP_TRACK_PREEMPTED, 90, 95, 190, THIEF, true);
	wait_for(FIRST, 0, VP_TRACK_WAKING, 300, 300, 305, 0, true); /* nobody known */
	wait_for(FIRST, 0, VP_TRACK_WAKING, 400, 400, 403, OTHER, true);
	wait_for(FIRST, 1, VP_TRACK_WAKING, 500, 500, 900, OTHER, false); /* goes on */
	assert_int_equal(sums.waits.count, 4);
	const struct vp_sched_wait *wait = sums.waits.at;
	assert_int_equal(wait[0].ns, 100);
	assert_int_equal(wait[0].vcpu, 1);
	assert_int_equal(wait[0].thief_tid, THIEF);
	assert_false(wait[0].woken);
	assert_int_equal(wait[1].ns, 60);
	assert_int_equal(wait[1].begin, 100);
	assert_int_equal(wait[1].vcpu, 0);
	assert_int_equal(wait[1].thief_tid, THIEF);
	assert_string_equal(wait[1].thief_comm, "thief");
	assert_true(wait[1].has_thief);
	assert_int_equal(wait[2].ns, 5);
	assert_false(wait[2].has_thief);
	assert_true(wait[2].woken);
	assert_int_equal(wait[3].ns, 3);
	assert_int_equal(wait[3].thief_tid, OTHER);
	assert_int_equal(sums.preempted[6], 1);
	assert_int_equal(sums.preempted[5], 1);
	assert_int_equal(sums.woken[2], 1);
	assert_int_equal(sums.woken[1], 1);
}

static void test_buckets(void **state)
{
	static const struct {
		uint64_t ns;
		uint32_t bucket;
	} waits[] = {{0, 0}, {1, 0},           {2, 1},           {3, 1},          {4, 2},
		     {7, 2}, {1ULL << 38, 38}, {1ULL << 39, 39}, {1ULL << 45, 39}};

	for (uint64_t i = 0; i < VP_ARRAY_SIZE(waits); i++) {
		uint64_t before = sums.preempted[waits[i].bucket];
		wait_for(FIRST, 0, VP_TRACK_PREEMPTED, i + 1, i + 1, i + 1 + waits[i].ns, THIEF,
			 true);
		assert_int_equal(sums.preempted[waits[i].bucket], before + 1);
	}
	struct vp_table table = {0};
	vp_sched_wait_table(&sums, &table);
	assert_int_equal(vp_table_rows(&table), VP_SCHED_BUCKETS);
	assert_int_equal(table.cells.at[0].count, 0);
	assert_int_equal(table.cells.at[3].count, 2);
	assert_int_equal(table.cells.at[2].count, 2);
	assert_true(table.cells.at[3 * 39].count == 1ULL << 39);
	assert_int_equal(table.cells.at[3 * 39 + 2].count, 2);
	vp_table_deinit(&table);
}

/* Of the same length, what came first is first; none are kept if none are asked for. */
static void test_longest(void **state)
{
	sums.max_waits = 2;
	for (uint64_t i = 1; i < 5; i++)
		wait_for(FIRST, (uint32_t)i, VP_TRACK_PREEMPTED, i, i, i + 10, THIEF, true);
	wait_for(SECOND, 0, VP_TRACK_PREEMPTED, 6, 6, 17, THIEF, true);
	assert_int_equal(sums.waits.count, 2);
	assert_int_equal(sums.waits.at[0].ns, 11);
	assert_int_equal(sums.waits.at[1].begin, 1);
	vp_sched_deinit(&sums);
	sums = (struct vp_sched){0};
	wait_for(SECOND, 0, VP_TRACK_PREEMPTED, 6, 6, 17, THIEF, true);
	assert_int_equal(sums.waits.count, 0);
	assert_int_equal(sums.preempted[3], 1);
}

static void take_thefts(void)
{
	static const struct {
		uint32_t tid, thief;
		uint64_t ns;
	} thefts[] = {{7, THIEF, 30}, {8, OTHER, 5}, {7, OTHER, 50}, {7, THIEF, 30}, {8, THIEF, 4}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(thefts); i++) {
		struct vp_track_slice slice =
		    slice_of(SECOND, 1, VP_TRACK_PREEMPTED, 100, 100 + thefts[i].ns);
		slice.wait_begin = 100;
		slice.has_guest = slice.has_thief = true;
		slice.guest_tid = thefts[i].tid;
		slice.thief_tid = thefts[i].thief;
		slice.thief_comm = thefts[i].thief == THIEF ? "thief" : "other";
		vp_sched_take(&sums, &slice);
	}
}

/* Of each thread the theft that took most, by all of its periods. */
static void test_thefts(void **state)
{
	take_thefts();
	assert_int_equal(sums.thefts.count, 4);
	assert_int_equal(sums.thefts.at[0].ns, 60);
	assert_int_equal(sums.thefts.at[0].thread, 0);
	assert_int_equal(sums.thefts.at[0].tid, THIEF);
	assert_int_equal(sums.thefts.at[1].thread, 1);
	assert_int_equal(sums.thefts.at[1].ns, 5);
	assert_int_equal(sums.thefts.at[2].ns, 50);
	assert_int_equal(sums.thefts.at[3].ns, 4);
}

static void expect_csv(struct vp_table *table, const char *expected)
{
	struct vp_buffer out = {0};

	vp_render_table_csv(table, true, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_table_deinit(table);
	*table = (struct vp_table){0};
}

/* Threads by their time, each with the thief that took most of it. */
static void test_thread_table(void **state)
{
	struct vp_table table = {0};

	take_of_thread(SECOND, 0, VP_TRACK_GUEST, 20, 9, VP_TRACK_UNCERTAIN);
	take_of_thread(FIRST, 1, VP_TRACK_WORK, 30, 9, VP_TRACK_UNKNOWN);
	take_thefts();
	take_of_thread(SECOND, 1, VP_TRACK_GUEST, 1000, 7, VP_TRACK_EXACT);
	vp_sched_thread_table(&sums, NULL, &table);
	expect_csv(&table, "vm,vcpu,pid,tid,comm,exact_ns,uncertain_ns,work_ns,steal_ns,thief_ns,"
			   "thief,host_ns,stolen_ns\n"
			   "beta,1,8,7,thread,1000,0,0,110,60,thief/50,0,110\n"
			   "alpha,1,10,9,thread,0,0,30,0,0,,30,0\n"
			   "beta,0,10,9,thread,0,20,0,0,0,,0,0\n"
			   "beta,1,0,8,,0,0,0,9,5,vCPU 0 of VM beta,0,9\n");
}

/* The share of guest time of which it is known whose it was; switches where they are counted. */
static void test_vcpu_table(void **state)
{
	struct vp_table table = {0};

	take_of_thread(SECOND, 1, VP_TRACK_GUEST, 300, 7, VP_TRACK_EXACT);
	take_of_thread(SECOND, 1, VP_TRACK_GUEST, 100, 7, VP_TRACK_UNCERTAIN);
	take(SECOND, 1, VP_TRACK_GUEST, 0, 100);
	take(SECOND, 1, VP_TRACK_WORK, 0, 2);
	take(SECOND, 1, VP_TRACK_PREEMPTED, 0, 3);
	take(SECOND, 1, VP_TRACK_WAKING, 0, 4);
	take(SECOND, 1, VP_TRACK_HALTED, 0, 5);
	take(SECOND, 1, VP_TRACK_WAITING, 0, 6);
	take(FIRST, VP_VCPU_UNKNOWN, VP_TRACK_WORK, 0, 9);
	vp_sched_vcpu_table(&sums, NULL, &table);
	expect_csv(&table,
		   "vm,vcpu,tid,guest_ns,work_ns,steal_ns,waking_ns,halted_ns,waiting_ns,"
		   "exact_ns,uncertain_ns,exact_percent,switches_total,switches_observed,"
		   "implausible,host_ns,stolen_ns,blocked_ns,switches_seen,switches_made,jumps\n"
		   "beta,1,2002,500,2,7,4,5,6,300,100,60,2002,8,3,2,3,6,8,2002,3\n"
		   "alpha,,66536,0,9,0,0,0,0,0,0,0,,,0,9,0,0,,,0\n");
}

static void test_wait_tables(void **state)
{
	struct vp_table table = {0};

	vp_sched_wait_table(&sums, &table);
	expect_csv(&table, "from_ns,wakeups,preemptions\n");
	wait_for(SECOND, 1, VP_TRACK_WAKING, 1000000005, 1000000005, 1000000014, THIEF, true);
	wait_for(FIRST, 0, VP_TRACK_PREEMPTED, 20, 20, 60, OTHER, true);
	wait_for(FIRST, 0, VP_TRACK_PREEMPTED, 70, 70, 107, 0, true);
	vp_sched_wait_table(&sums, &table);
	expect_csv(&table, "from_ns,wakeups,preemptions\n8,1,0\n16,0,0\n32,0,2\n");
	vp_sched_worst_table(&sums, NULL, &table);
	expect_csv(&table, "vm,vcpu,ns,after,at_s,guest_thread,thief\n"
			   "alpha,0,40,preemption,0.000000020,,vCPU 0 of VM beta\n"
			   "alpha,0,37,preemption,0.000000070,,\n"
			   "beta,1,9,wakeup,1.000000005,,thief/50\n");
}

/* Periods of vCPUs that are told by their states (Xen): a VM is the host, whose threads are known
 * by its scheduler. */
struct told {
	struct vp_feed feed;
	struct vp_track_states *states;
	struct vp_buffer out;
};

static void tell(void *context, const struct vp_track_slice *slice)
{
	static const char *const states[] = {"running", "idle",   "guest",  "host",
					     "stolen",  "waking", "halted", "blocked"};
	static const char *const certain[] = {"", " exact", " uncertain"};
	struct told *told = context;

	if (slice->track != VP_TRACK_VCPU)
		return;
	vp_buffer_printf(&told->out, "%u/%u %llu-%llu %s", slice->vm, slice->vcpu,
			 (unsigned long long)slice->begin, (unsigned long long)slice->end,
			 states[slice->state]);
	if (slice->has_guest)
		vp_buffer_printf(&told->out, " %u%s", slice->guest_tid, certain[slice->certainty]);
	if (slice->has_thief)
		vp_buffer_printf(&told->out, " by %s", slice->thief_comm);
	if (slice->state == VP_TRACK_PREEMPTED || slice->state == VP_TRACK_WAKING)
		vp_buffer_printf(&told->out, " since %llu", (unsigned long long)slice->wait_begin);
	vp_buffer_string(&told->out, slice->wait_ends ? " ends\n" : "\n");
}

static void begin_states(struct told *told)
{
	*told = (struct told){0};
	for (uint32_t i = 0; i < 2; i++) {
		struct vp_vm vm = vp_vm_of_id(1000 * (i + 1));
		vm.has_domain = true;
		vm.domain = i;
		vm.name = vp_format("dom%u", i);
		vp_vec_push(&told->feed.vms, vm);
	}
	expect_no_error(vp_track_states_new("none", &told->feed, tell, told, &told->states));
}

static void expect_states(struct told *told, const char *expected)
{
	vp_track_states_end(told->states);
	assert_string_equal(vp_buffer_text(&told->out), expected);
	vp_track_states_free(told->states);
	vp_buffer_deinit(&told->out);
	vp_vms_deinit(&told->feed.vms);
}

static void span(struct told *told, uint32_t vm, uint32_t vcpu, uint32_t pcpu, uint64_t end,
		 uint64_t ns, enum vp_state state, uint16_t flags)
{
	const struct vp_vcpu_span record = {.time = end,
					    .id = VP_ID_vcpu_span,
					    .vm = vm,
					    .tid = vm + vcpu + 1,
					    .vcpu = (uint16_t)vcpu,
					    .cpu = pcpu,
					    .state = (uint8_t)state,
					    .ns = ns,
					    .flags = flags};
	const struct vp_feed_event event = {.time = end, .kind = VP_FEED_SPAN, .span = &record};

	vp_track_states_take(told->states, &event);
}

static void change(struct told *told, uint32_t cpu, uint64_t time, uint32_t prev, uint32_t next)
{
	const struct vp_trace_sched_switch record = {.prev_tid = prev, .next_tid = next};
	const struct vp_feed_event event = {
	    .time = time, .pcpu = cpu, .kind = VP_TRACE_KIND_sched_switch, .sched_switch = &record};

	vp_track_states_take(told->states, &event);
}

/* A thread that nothing said had the vCPU before: a switch was lost, and what was told is not
 * exact. */
static void test_lost_switch(void **state)
{
	struct told told;

	begin_states(&told);
	change(&told, 0, 110, 5, 6);
	change(&told, 1, 115, 55, 66);
	change(&told, 0, 120, 6, 7);
	change(&told, 0, 130, 8, 9); /* 8 was never told to come */
	span(&told, FIRST, 0, 3, 140, 40, VP_STATE_GUEST, 0);
	span(&told, FIRST, 1, 2, 140, 40, VP_STATE_GUEST, 0);
	change(&told, 0, 145, 9, 10);
	span(&told, FIRST, 0, 3, 150, 10, VP_STATE_KERNEL, 0);
	expect_states(&told, "1000/0 100-110 guest\n"
			     "1000/0 110-120 guest 6 exact\n"
			     "1000/0 120-130 guest 7 uncertain\n"
			     "1000/0 130-140 guest 9 exact\n"
			     "1000/1 100-115 guest\n"
			     "1000/1 115-140 guest 66 exact\n"
			     "1000/0 140-145 host 9\n"
			     "1000/0 145-150 host 10\n");
}

static void test_states(void **state)
{
	static const struct {
		enum vp_state state;
		const char *name;
	} states[] = {{VP_STATE_GUEST, "guest"},     {VP_STATE_KERNEL, "host"},
		      {VP_STATE_POLL, "host"},       {VP_STATE_VMM, "host"},
		      {VP_STATE_IRQ, "host"},        {VP_STATE_HALTED, "halted"},
		      {VP_STATE_WAITING, "blocked"}, {VP_STATE_THROTTLED, "blocked"},
		      {VP_STATE_WAKING, "waking"},   {VP_STATE_PREEMPTED, "stolen"}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(states); i++) {
		struct told told;
		begin_states(&told);
		span(&told, SECOND, 1, 3, 140, 40, states[i].state, 0);
		span(&told, SECOND, 1, 3, 150, 40, VP_STATES, 0); /* none */
		VP_AUTO_FREE char *expected =
		    vp_format("2000/1 100-140 %s%s\n", states[i].name, i < 8 ? "" : " since 100");
		expect_states(&told, expected);
	}
}

/* Each piece of a wait says who had the pCPU; the last one that the wait ended. The switch to a
 * vCPU is part of its turn to those who wait longer. */
static void test_pieces(void **state)
{
	struct told told;

	begin_states(&told);
	span(&told, FIRST, 0, 3, 110, 10, VP_STATE_GUEST, 0);
	span(&told, FIRST, 1, 3, 120, 15, VP_STATE_PREEMPTED, VP_STATE_GOT_PCPU);
	span(&told, FIRST, 1, 3, 130, 10, VP_STATE_GUEST, 0);
	span(&told, SECOND, 1, 3, 150, 60, VP_STATE_WAKING, VP_STATE_GOT_PCPU | VP_STATE_WAS_IDLE);
	span(&told, SECOND, 1, 3, 160, 10, VP_STATE_GUEST, 0);
	span(&told, FIRST, 0, 4, 170, 60, VP_STATE_PREEMPTED, 0);
	expect_states(&told, "1000/0 100-110 guest\n"
			     "1000/1 105-120 stolen by vCPU 0 of VM dom0 since 105 ends\n"
			     "1000/1 120-130 guest\n"
			     "2000/1 90-100 waking since 90\n"
			     "2000/1 100-110 waking by vCPU 0 of VM dom0 since 90\n"
			     "2000/1 110-130 waking by vCPU 1 of VM dom0 since 90\n"
			     "2000/1 130-150 waking by nobody since 90 ends\n"
			     "2000/1 150-160 guest\n"
			     "1000/0 110-170 stolen since 110\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_vcpus),       TEST(test_unknown_numbers), TEST(test_threads),
	    TEST(test_waits),       TEST(test_buckets),         TEST(test_longest),
	    TEST(test_thefts),      TEST(test_lost_switch),     TEST(test_states),
	    TEST(test_pieces),      TEST(test_thread_table),    TEST(test_vcpu_table),
	    TEST(test_wait_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
