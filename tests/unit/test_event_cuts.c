/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accounting in a window of a recording with events: cut where the events are, and adjacent windows
 * sum to the whole. */
#include "unit.h"

#include <string.h>

#include "analyze/account/account_seconds.h"
#include "analyze/report/account_trace.h"
#include "base/alloc.h"
#include "make_recording.h"
#include "schema/account_terms.h"

#define NAME "test_event_cuts.rec"
#define MS 1000000ULL
#define AT(ms) (MADE_START + (ms)*MS)

enum { VM = 1000, CPU0 = 1001, THIEF = 50, OTHER = 51, TIMER_VECTOR = 236 };
enum { MADE_IOIO = 0x7b };
enum { HOST = 1000, GUEST = 2000, NEIGHBOUR = 3000 }; /* domains; vCPU 0 of each */

static void put(struct made *made, uint64_t ms, uint32_t id, void *record)
{
	struct vp_record_header *header = record;

	header->time = AT(ms);
	header->id = (uint16_t)id;
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, record);
}

#define PUT(made, ms, name, ...) put(made, ms, VP_ID_##name, &(struct vp_##name){__VA_ARGS__})

static void put_sums(struct made *made, uint32_t vm, uint64_t begin, uint64_t end,
		     struct vp_vcpu_account sums)
{
	sums.vm = vm;
	sums.tid = vm + 1;
	sums.begin = AT(begin);
	sums.end = AT(end);
	put(made, end, VP_ID_vcpu_account, &sums);
}

static void put_thief(struct made *made, uint64_t ms, uint32_t state, uint32_t kind,
		      uint32_t number, uint64_t ns, uint64_t count)
{
	PUT(made, ms, thief, .vm = VM, .state = (uint16_t)state, .kind = (uint16_t)kind,
	    .number = number, .ns = ns, .count = count);
}

/* The thief is vCPU 0 of that VM; 0: nobody. */
static void put_owner(struct made *made, uint32_t vm, uint64_t ms, uint32_t state, uint32_t owner,
		      uint64_t ns)
{
	PUT(made, ms, thief, .vm = vm, .state = (uint16_t)state,
	    .kind = owner ? VP_BY_VCPU : VP_BY_NOBODY, .thief_pid = owner, .ns = ns, .count = 1);
}

static void put_exits(struct made *made, uint32_t vm, uint64_t ms, uint32_t reason, uint64_t count,
		      struct vp_exit_account parts)
{
	parts.vm = vm;
	parts.vendor = VP_VENDOR_AMD;
	parts.reason = reason;
	parts.count = count;
	parts.total = parts.kernel + parts.stolen + parts.blocked + parts.waking;
	put(made, ms, VP_ID_exit_account, &parts);
}

/*
 * Guest until 10 ms, an exit (NPF) for 1 ms, guest; preempted from 20 by the thief, from 30 by the
 * other, until 60: the wait began in the first interval, of 50 ms, and ends in the second. Guest
 * from 61; an interrupt at 70 for 2 ms; a halt at 80, woken at 95, with the pCPU at 96, guest from
 * 97 to 100.
 */
static void make(void)
{
	struct made made;

	made_begin(&made, NAME, 1);
	made_trace_begin(&made, 1);
	free(made.about.instruments);
	made.about.instruments = vp_strdup("profile account trace");
	MADE_EVENT(&made, 0, AT(0), kvm_entry, .tid = CPU0, .vm = VM);
	MADE_EVENT(&made, 0, AT(10), kvm_exit, .tid = CPU0, .vm = VM, .reason = MADE_NPF,
		   .vendor = VP_VENDOR_AMD);
	MADE_EVENT(&made, 0, AT(11), kvm_entry, .tid = CPU0, .vm = VM);
	MADE_EVENT(&made, 0, AT(20), kvm_exit, .tid = CPU0, .vm = VM, .reason = MADE_INTR,
		   .vendor = VP_VENDOR_AMD);
	MADE_EVENT(&made, 0, AT(20), sched_switch, .prev_tid = CPU0, .next_tid = THIEF);
	MADE_EVENT(&made, 0, AT(30), sched_switch, .prev_tid = THIEF, .next_tid = OTHER);
	MADE_EVENT(&made, 0, AT(60), sched_switch, .prev_tid = OTHER, .next_tid = CPU0);
	MADE_EVENT(&made, 0, AT(61), kvm_entry, .tid = CPU0, .vm = VM);
	MADE_EVENT(&made, 0, AT(70), local_timer_entry, .tid = CPU0, .vector = TIMER_VECTOR);
	MADE_EVENT(&made, 0, AT(72), local_timer_exit, .tid = CPU0, .vector = TIMER_VECTOR);
	MADE_EVENT(&made, 0, AT(73), kvm_exit, .tid = CPU0, .vm = VM, .reason = MADE_INTR,
		   .vendor = VP_VENDOR_AMD);
	MADE_EVENT(&made, 0, AT(74), kvm_entry, .tid = CPU0, .vm = VM);
	MADE_EVENT(&made, 0, AT(80), kvm_exit, .tid = CPU0, .vm = VM, .reason = MADE_HLT,
		   .vendor = VP_VENDOR_AMD);
	MADE_EVENT(&made, 0, AT(81), sched_switch, .prev_tid = CPU0, .prev_state = 1);
	MADE_EVENT(&made, 0, AT(95), sched_wakeup, .woken_tid = CPU0);
	MADE_EVENT(&made, 0, AT(96), sched_switch, .next_tid = CPU0);
	MADE_EVENT(&made, 0, AT(97), kvm_entry, .tid = CPU0, .vm = VM);
	MADE_EVENT(&made, 0, AT(100), kvm_exit, .tid = CPU0, .vm = VM, .reason = MADE_NPF,
		   .vendor = VP_VENDOR_AMD);

	put_sums(&made, VM, 0, 50,
		 (struct vp_vcpu_account){.guest = 19 * MS,
					  .kernel = 1 * MS,
					  .preempted = 30 * MS,
					  .exits = 1,
					  .preemptions = 1});
	put_exits(&made, VM, 50, MADE_NPF, 1, (struct vp_exit_account){.kernel = MS});
	put_sums(&made, VM, 50, 100,
		 (struct vp_vcpu_account){.guest = 18 * MS,
					  .kernel = 5 * MS,
					  .irq = 2 * MS,
					  .halted = 14 * MS,
					  .waking = 1 * MS,
					  .preempted = 10 * MS,
					  .exits = 3,
					  .wakeups = 1});
	put_exits(&made, VM, 100, MADE_INTR, 2,
		  (struct vp_exit_account){.kernel = 3 * MS, .stolen = 42 * MS});
	put_exits(&made, VM, 100, MADE_HLT, 1,
		  (struct vp_exit_account){.kernel = 2 * MS, .blocked = 14 * MS, .waking = MS});
	put_thief(&made, 100, VP_STATE_IRQ, VP_BY_VECTOR, VP_IRQ_LOCAL_TIMER, 2 * MS, 1);
	put_thief(&made, 100, VP_STATE_PREEMPTED, VP_BY_TASK, THIEF, 10 * MS, 1);
	put_thief(&made, 100, VP_STATE_PREEMPTED, VP_BY_TASK, OTHER, 30 * MS, 1);
	put_thief(&made, 100, VP_STATE_WAKING, VP_BY_NOBODY, 0, MS, 1);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, 0);
	made_trace_end(&made, 1, 100);
}

/* A state of the domain's vCPU on that pCPU, from `begin` to `end` ms; in an exit unless `reason`
 * is 0. */
static void put_state_on(struct made *made, uint32_t pcpu, uint32_t vm, uint64_t begin,
			 uint64_t end, enum vp_state state, uint32_t reason, int flags)
{
	struct vp_vcpu_span span = {.time = AT(end),
				    .id = VP_ID_vcpu_span,
				    .flags = (uint16_t)(flags | (reason ? VP_HAS_EXIT_REASON : 0)),
				    .vm = vm,
				    .tid = vm + 1,
				    .state = (uint8_t)state,
				    .vendor = VP_VENDOR_AMD,
				    .reason = reason,
				    .cpu = pcpu,
				    .ns = (end - begin) * MS};

	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU},
			(void *)&span);
}

static void put_state(struct made *made, uint32_t vm, uint64_t begin, uint64_t end,
		      enum vp_state state, uint32_t reason, int flags)
{
	put_state_on(made, 0, vm, begin, end, state, reason, flags);
}

static void put_states(struct made *made)
{
	const int got = VP_STATE_GOT_PCPU, idle = VP_STATE_WAS_IDLE;

	put_state(made, GUEST, 0, 2, VP_STATE_WAKING, 0, got | idle);
	put_state(made, GUEST, 2, 10, VP_STATE_GUEST, 0, 0);
	put_state(made, GUEST, 10, 11, VP_STATE_KERNEL, MADE_NPF, 0);
	put_state(made, HOST, 0, 15, VP_STATE_HALTED, 0, 0);
	put_state(made, GUEST, 11, 15, VP_STATE_GUEST, 0, 0);
	put_state(made, GUEST, 15, 18, VP_STATE_KERNEL, MADE_NPF, 0);
	put_state(made, GUEST, 18, 20, VP_STATE_GUEST, 0, 0);
	put_state(made, GUEST, 20, 21, VP_STATE_KERNEL, MADE_INTR, 0);
	put_state(made, HOST, 15, 21, VP_STATE_WAKING, 0, got);
	put_state(made, NEIGHBOUR, 0, 25, VP_STATE_HALTED, 0, 0);
	put_state(made, HOST, 21, 30, VP_STATE_GUEST, 0, 0);
	put_state(made, NEIGHBOUR, 25, 30, VP_STATE_WAKING, 0, got);
	put_state(made, NEIGHBOUR, 30, 60, VP_STATE_GUEST, 0, 0);
	put_state(made, GUEST, 21, 60, VP_STATE_PREEMPTED, MADE_INTR, got);
	put_state(made, GUEST, 60, 61, VP_STATE_KERNEL, MADE_INTR, 0);
	put_state(made, NEIGHBOUR, 60, 70, VP_STATE_THROTTLED, 0, 0);
	put_state(made, GUEST, 61, 80, VP_STATE_GUEST, 0, 0);
	put_state(made, GUEST, 80, 81, VP_STATE_KERNEL, MADE_HLT, 0);
	put_state(made, HOST, 30, 94, VP_STATE_HALTED, 0, 0);
	put_state(made, GUEST, 81, 95, VP_STATE_HALTED, MADE_HLT, 0);
	put_state(made, GUEST, 95, 96, VP_STATE_WAKING, MADE_HLT, got | idle);
	put_state(made, GUEST, 96, 97, VP_STATE_KERNEL, MADE_HLT, 0);
	/* Who had that pCPU before is not recorded. */
	put_state_on(made, 1, HOST, 94, 98, VP_STATE_WAKING, 0, got);
	put_state(made, GUEST, 97, 100, VP_STATE_GUEST, 0, 0);
	put_state_on(made, 1, HOST, 98, 100, VP_STATE_GUEST, 0, 0);
	put_state(made, NEIGHBOUR, 70, 100, VP_STATE_HALTED, 0, 0);
	vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU}, 0);
}

static void put_sums_of_states(struct made *made, uint64_t work)
{
	put_sums(made, HOST, 0, 50,
		 (struct vp_vcpu_account){
		     .guest = 9 * MS, .halted = 35 * MS, .waking = 6 * MS, .wakeups = 1});
	put_sums(made, GUEST, 0, 50,
		 (struct vp_vcpu_account){.guest = 14 * MS,
					  .kernel = 5 * MS,
					  .waking = 2 * MS,
					  .preempted = 29 * MS,
					  .exits = 2,
					  .preemptions = 1});
	put_sums(made, NEIGHBOUR, 0, 50,
		 (struct vp_vcpu_account){
		     .guest = 20 * MS, .halted = 25 * MS, .waking = 5 * MS, .wakeups = 1});
	put_exits(made, GUEST, 50, MADE_NPF, 2, (struct vp_exit_account){.kernel = 4 * MS});
	if (work) /* counted, without a time and without a state */
		put_exits(made, GUEST, 50, MADE_IOIO, work, (struct vp_exit_account){0});
	put_owner(made, GUEST, 50, VP_STATE_WAKING, 0, 2 * MS);
	put_owner(made, HOST, 50, VP_STATE_WAKING, GUEST, 6 * MS);
	put_owner(made, NEIGHBOUR, 50, VP_STATE_WAKING, HOST, 5 * MS);
	put_sums(made, HOST, 50, 100,
		 (struct vp_vcpu_account){
		     .guest = 2 * MS, .halted = 44 * MS, .waking = 4 * MS, .wakeups = 1});
	PUT(made, 100, thief, .vm = HOST, .state = VP_STATE_WAKING, .kind = VP_BY_UNKNOWN,
	    .ns = 4 * MS, .count = 1);
	put_sums(made, GUEST, 50, 100,
		 (struct vp_vcpu_account){.guest = 22 * MS,
					  .kernel = 3 * MS,
					  .halted = 14 * MS,
					  .waking = 1 * MS,
					  .preempted = 10 * MS,
					  .exits = 2,
					  .wakeups = 1});
	put_sums(
	    made, NEIGHBOUR, 50, 100,
	    (struct vp_vcpu_account){.guest = 10 * MS, .throttled = 10 * MS, .halted = 30 * MS});
	put_exits(made, GUEST, 100, MADE_INTR, 1,
		  (struct vp_exit_account){.kernel = 2 * MS, .stolen = 39 * MS});
	put_exits(made, GUEST, 100, MADE_HLT, 1,
		  (struct vp_exit_account){.kernel = 2 * MS, .blocked = 14 * MS, .waking = MS});
	put_owner(made, GUEST, 100, VP_STATE_PREEMPTED, HOST, 9 * MS);
	put_owner(made, GUEST, 100, VP_STATE_PREEMPTED, NEIGHBOUR, 30 * MS);
	put_owner(made, GUEST, 100, VP_STATE_WAKING, 0, MS);
	vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, 0);
}

/* vCPUs seen by their states alone: those of Xen's domains, or of VMs that are processes. `end`,
 * ms; 0: interrupted. */
static void make_states(bool domains, uint64_t work, uint64_t end)
{
	struct made made;

	made_begin(&made, NAME, 3);
	free(made.about.instruments);
	made.about.instruments = vp_strdup("profile account");
	for (uint32_t i = 0; domains && i < 3; i++) {
		made.vms.at[i].has_domain = true;
		made.vms.at[i].domain = i;
	}
	put_states(&made);
	put_sums_of_states(&made, work);
	made_end(&made, end);
}

struct cut_sums {
	uint64_t wall, states[VP_STATES], exits, wakeups, preemptions;
	uint64_t by_thief, by_other, by_timer, by_nobody, by_unknown, turns;
	uint64_t by_host, by_guest, by_neighbour;
	uint64_t npf, intr, hlt, npf_kernel, intr_kernel, intr_stolen, hlt_blocked;
	uint64_t error; /* the largest */
};

static void add_thefts(const struct vp_account *account, struct cut_sums *sums)
{
	vp_vec_each (&account->thefts, theft) {
		uint64_t ns = theft->preempted + theft->waking + theft->irq;
		sums->turns += theft->count;
		sums->by_thief += theft->id == THIEF ? ns : 0;
		sums->by_other += theft->id == OTHER ? ns : 0;
		sums->by_timer += theft->kind == VP_BY_VECTOR ? ns : 0;
		sums->by_nobody += theft->kind == VP_BY_NOBODY ? ns : 0;
		sums->by_unknown += theft->kind == VP_BY_UNKNOWN ? ns : 0;
		if (theft->kind == VP_BY_VCPU) {
			sums->by_host += theft->owner == HOST ? ns : 0;
			sums->by_guest += theft->owner == GUEST ? ns : 0;
			sums->by_neighbour += theft->owner == NEIGHBOUR ? ns : 0;
		}
	}
	vp_vec_each (&account->costs, cost) {
		sums->npf += cost->reason == MADE_NPF ? cost->count : 0;
		sums->intr += cost->reason == MADE_INTR ? cost->count : 0;
		sums->hlt += cost->reason == MADE_HLT ? cost->count : 0;
		sums->npf_kernel += cost->reason == MADE_NPF ? cost->kernel : 0;
		sums->intr_kernel += cost->reason == MADE_INTR ? cost->kernel : 0;
		sums->intr_stolen += cost->reason == MADE_INTR ? cost->stolen : 0;
		sums->hlt_blocked += cost->reason == MADE_HLT ? cost->blocked : 0;
	}
}

static void add_window(uint64_t from, uint64_t to, struct cut_sums *sums)
{
	const struct vp_window window = {from, to};
	struct vp_account_recording rec;

	expect_no_error(vp_account_trace_open(NAME, &window, &rec));
	vp_vec_each (&rec.account.times, times) {
		sums->wall += times->wall;
		for (size_t i = 0; i < VP_STATES; i++)
			sums->states[i] += times->states[i];
		sums->exits += times->exits;
		sums->wakeups += times->wakeups;
		sums->preemptions += times->preemptions;
	}
	add_thefts(&rec.account, sums);
	const struct vp_account_window *bounds = &rec.account.window;
	const uint64_t errors[] = {bounds->state_error, bounds->theft_error, bounds->exit_error};
	for (size_t i = 0; i < VP_ARRAY_SIZE(errors); i++)
		sums->error = errors[i] > sums->error ? errors[i] : sums->error;
	assert_true(rec.exact == !sums->error);
	vp_account_recording_close(&rec);
}

static int setup(void **state)
{
	make();
	return 0;
}

static int setup_states(void **state)
{
	make_states(true, 0, 100);
	return 0;
}

static size_t count_notes(const vp_sentences *notes, const char *part)
{
	size_t count = 0;

	vp_vec_each (notes, note)
		count += strstr(*note, part) != NULL;
	return count;
}

static void expect_windows_sum(const struct cut_sums *whole)
{
	for (uint64_t one = 1; one < 99; one += 9)
		for (uint64_t other = one + 1; other < 100; other += 7) {
			struct cut_sums parts = {0};
			const uint64_t first = AT(one) + 333333, second = AT(other);
			add_window(MADE_START, first, &parts);
			if (first < second)
				add_window(first, second, &parts);
			else
				continue;
			add_window(second, AT(100), &parts);
			assert_memory_equal(&parts, whole, sizeof(parts));
		}
}

/* Two borders, in all states: in a wait that goes on in the next interval, too. */
static void test_windows_sum(void **state)
{
	struct cut_sums whole = {0};

	add_window(MADE_START, AT(100), &whole);
	assert_int_equal(whole.wall, 100 * MS);
	assert_int_equal(whole.by_other, 30 * MS);
	assert_int_equal(whole.turns, 4);
	expect_windows_sum(&whole);
}

/* Within one interval, or across their border: the times of the events. */
static void test_exact(void **state)
{
	struct cut_sums sums = {0};

	add_window(AT(15), AT(35), &sums);
	assert_int_equal(sums.states[VP_STATE_GUEST], 5 * MS);
	assert_int_equal(sums.states[VP_STATE_KERNEL], 0);
	assert_int_equal(sums.states[VP_STATE_PREEMPTED], 15 * MS);
	/* The wait's thieves are recorded where it ends, after the window. */
	assert_int_equal(sums.by_thief, 10 * MS);
	assert_int_equal(sums.by_other, 5 * MS);
	assert_int_equal(sums.preemptions, 1);
	assert_int_equal(sums.exits, 0);
	assert_int_equal(sums.error, 0);

	sums = (struct cut_sums){0};
	add_window(AT(40), AT(71), &sums);
	assert_int_equal(sums.states[VP_STATE_PREEMPTED], 20 * MS);
	assert_int_equal(sums.by_thief, 0);
	assert_int_equal(sums.by_other, 20 * MS);
	assert_int_equal(sums.states[VP_STATE_GUEST], 9 * MS);
	assert_int_equal(sums.states[VP_STATE_KERNEL], 1 * MS);
	assert_int_equal(sums.states[VP_STATE_IRQ], 1 * MS);
	assert_int_equal(sums.by_timer, 1 * MS);
	assert_int_equal(sums.error, 0);
	/* The exit of the wait ended at 61, with all of its time. */
	assert_int_equal(sums.intr, 1);
	assert_int_equal(sums.intr_kernel, 1 * MS);
	assert_int_equal(sums.intr_stolen, 40 * MS);

	sums = (struct cut_sums){0};
	add_window(AT(72), AT(96), &sums);
	assert_int_equal(sums.states[VP_STATE_KERNEL], 3 * MS);
	assert_int_equal(sums.states[VP_STATE_GUEST], 6 * MS);
	assert_int_equal(sums.states[VP_STATE_HALTED], 14 * MS);
	assert_int_equal(sums.states[VP_STATE_WAKING], 1 * MS);
	assert_int_equal(sums.by_nobody, 1 * MS);
	assert_int_equal(sums.wakeups, 1);
	assert_int_equal(sums.intr, 1);
	assert_int_equal(sums.intr_kernel, 2 * MS);
	assert_int_equal(sums.intr_stolen, 2 * MS);
	assert_int_equal(sums.hlt, 0);
	assert_int_equal(sums.error, 0);
}

/* Three vCPUs. */
static void test_windows_of_states_sum(void **state)
{
	struct cut_sums whole = {0};

	add_window(MADE_START, AT(100), &whole);
	assert_int_equal(whole.wall, 300 * MS);
	assert_int_equal(whole.by_neighbour, 30 * MS);
	assert_int_equal(whole.turns, 7);
	assert_int_equal(whole.error, 0);
	expect_windows_sum(&whole);
}

/* On Xen, states show who had the pCPU during a wait, and to which exit a time belongs. */
static void test_exact_by_states(void **state)
{
	struct cut_sums sums = {0};

	/* The first wait, for a pCPU that nobody had since the start. */
	add_window(AT(1), AT(12), &sums);
	assert_int_equal(sums.by_nobody, 1 * MS);
	assert_int_equal(sums.by_unknown, 0);
	assert_int_equal(sums.npf, 1);
	assert_int_equal(sums.npf_kernel, 1 * MS);
	assert_int_equal(sums.error, 0);

	sums = (struct cut_sums){0};
	add_window(AT(18), AT(35), &sums);
	assert_int_equal(sums.wall, 3 * 17 * MS);
	assert_int_equal(sums.states[VP_STATE_PREEMPTED], 14 * MS);
	assert_int_equal(sums.states[VP_STATE_WAKING], 8 * MS);
	assert_int_equal(sums.by_guest, 3 * MS);
	assert_int_equal(sums.by_host, 9 * MS + 5 * MS);
	assert_int_equal(sums.by_neighbour, 5 * MS);
	assert_int_equal(sums.by_nobody, 0);
	assert_int_equal(sums.preemptions, 1);
	assert_int_equal(sums.wakeups, 1);
	assert_int_equal(sums.exits, 0);
	assert_int_equal(sums.error, 0);

	sums = (struct cut_sums){0};
	add_window(AT(40), AT(96), &sums);
	assert_int_equal(sums.by_host, 0);
	assert_int_equal(sums.by_neighbour, 20 * MS);
	assert_int_equal(sums.by_nobody, 1 * MS);
	assert_int_equal(sums.states[VP_STATE_KERNEL], 2 * MS);
	/* Preempted during its exit, which ended at 61 with all of its time. */
	assert_int_equal(sums.intr, 1);
	assert_int_equal(sums.intr_kernel, 2 * MS);
	assert_int_equal(sums.intr_stolen, 39 * MS);
	assert_int_equal(sums.hlt, 0);
	assert_int_equal(sums.exits, 1);
	assert_int_equal(sums.error, 0);

	sums = (struct cut_sums){0};
	add_window(AT(96), AT(98), &sums);
	assert_int_equal(sums.hlt, 1);
	assert_int_equal(sums.hlt_blocked, 14 * MS);
	assert_int_equal(sums.by_unknown, 2 * MS);
	assert_int_equal(sums.error, 0);
	assert_int_equal(sums.intr, 0);
}

struct second_sums {
	struct vp_window window;
	uint64_t states[VP_STATES];
};

static void add_second(void *context, const struct vp_account *second, uint64_t begin, uint64_t end)
{
	struct second_sums *sums = context;

	assert_int_equal(begin, sums->window.from);
	assert_int_equal(end, sums->window.to);
	vp_vec_each (&second->times, times)
		for (size_t i = 0; i < VP_STATES; i++)
			sums->states[i] += times->states[i];
}

static void read_second(uint64_t from, uint64_t to, struct second_sums *ret)
{
	struct vp_account_recording rec;

	*ret = (struct second_sums){.window = {from, to}};
	expect_no_error(vp_account_trace_open(NAME, &ret->window, &rec));
	expect_no_error(vp_account_seconds_read(NAME, &rec.account, add_second, ret));
	vp_account_recording_close(&rec);
}

/* The parts of the sums at its borders are exact, too; time of a cap is in its own state. */
static void test_seconds_by_states(void **state)
{
	struct second_sums sums;

	read_second(AT(18), AT(35), &sums);
	assert_int_equal(sums.states[VP_STATE_PREEMPTED], 14 * MS);
	assert_int_equal(sums.states[VP_STATE_WAKING], 8 * MS);
	assert_int_equal(sums.states[VP_STATE_GUEST], 2 * MS + 9 * MS + 5 * MS);
	assert_int_equal(sums.states[VP_STATE_KERNEL], 1 * MS);
	read_second(AT(58), AT(63), &sums);
	assert_int_equal(sums.states[VP_STATE_PREEMPTED], 2 * MS);
	assert_int_equal(sums.states[VP_STATE_THROTTLED], 3 * MS);
	assert_int_equal(sums.states[VP_STATE_GUEST], 2 * MS + 2 * MS);
}

/* Nothing shows when it was: a note says that its number is an estimate. */
static void test_work_without_states(void **state)
{
	const struct vp_window window = {AT(10), AT(35)};
	struct vp_account_recording rec;

	make_states(true, 1000, 100);
	expect_no_error(vp_account_trace_open(NAME, &window, &rec));
	assert_int_equal(rec.account.costs.at[1].count, 500);
	assert_false(rec.exact);
	assert_int_equal(
	    count_notes(&rec.notes, "are estimates, off by at most 500; all times are exact"), 1);
	vp_account_recording_close(&rec);
}

/* States of VMs that are processes show no tasks: the window is widened, for all tables alike. */
static void test_states_of_processes(void **state)
{
	const struct vp_window window = {AT(18), AT(35)};
	struct vp_account_recording rec;
	struct cut_sums sums = {0};

	make_states(false, 0, 100);
	expect_no_error(vp_account_trace_open(NAME, &window, &rec));
	assert_true(rec.exact);
	assert_int_equal(rec.window.from, MADE_START);
	assert_int_equal(rec.window.to, AT(50));
	assert_int_equal(count_notes(&rec.notes, "widened to whole steps"), 1);
	add_thefts(&rec.account, &sums);
	assert_int_equal(sums.by_guest, 6 * MS);
	assert_int_equal(sums.npf, 2);
	vp_vec_each (&rec.account.times, times)
		assert_int_equal(times->wall, 50 * MS);
	assert_int_equal(rec.account.times.at[1].states[VP_STATE_PREEMPTED], 29 * MS);
	vp_account_recording_close(&rec);
}

/* Its last sums are the end of an interrupted recording. */
static void test_interrupted(void **state)
{
	const struct vp_window window = {AT(40), UINT64_MAX};
	struct vp_account_recording rec;

	make_states(true, 0, 0);
	expect_no_error(vp_account_trace_open(NAME, &window, &rec));
	assert_true(rec.exact);
	assert_int_equal(rec.window.from, AT(40));
	assert_int_equal(rec.window.to, AT(100));
	assert_float_equal(rec.duration, 0.06, 1e-12);
	assert_int_equal(rec.account.times.at[0].wall, 60 * MS);
	vp_account_recording_close(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_windows_sum),
	    cmocka_unit_test(test_exact),
	    cmocka_unit_test_setup(test_windows_of_states_sum, setup_states),
	    cmocka_unit_test_setup(test_exact_by_states, setup_states),
	    cmocka_unit_test_setup(test_seconds_by_states, setup_states),
	    cmocka_unit_test(test_work_without_states),
	    cmocka_unit_test(test_states_of_processes),
	    cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
