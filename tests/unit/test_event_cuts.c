/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accounting in a window of a recording with events: cut where the events are, and adjacent windows
 * sum to the whole. */
#include "unit.h"

#include <string.h>

#include "analyze/report/account_trace.h"
#include "base/alloc.h"
#include "make_recording.h"
#include "schema/account_terms.h"

#define NAME "test_event_cuts.rec"
#define MS 1000000ULL
#define AT(ms) (MADE_START + (ms)*MS)

enum { VM = 1000, CPU0 = 1001, THIEF = 50, OTHER = 51, TIMER_VECTOR = 236 };

static void put(struct made *made, uint64_t ms, uint32_t id, void *record)
{
	struct vp_record_header *header = record;

	header->time = AT(ms);
	header->id = (uint16_t)id;
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, record);
}

#define PUT(made, ms, name, ...) put(made, ms, VP_ID_##name, &(struct vp_##name){__VA_ARGS__})

static void put_sums(struct made *made, uint64_t begin, uint64_t end, struct vp_vcpu_account sums)
{
	sums.vm = VM;
	sums.tid = CPU0;
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

static void put_exits(struct made *made, uint64_t ms, uint32_t reason, uint64_t count,
		      struct vp_exit_account parts)
{
	parts.vm = VM;
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

	put_sums(&made, 0, 50,
		 (struct vp_vcpu_account){.guest = 19 * MS,
					  .kernel = 1 * MS,
					  .preempted = 30 * MS,
					  .exits = 1,
					  .preemptions = 1});
	put_exits(&made, 50, MADE_NPF, 1, (struct vp_exit_account){.kernel = MS});
	put_sums(&made, 50, 100,
		 (struct vp_vcpu_account){.guest = 18 * MS,
					  .kernel = 5 * MS,
					  .irq = 2 * MS,
					  .halted = 14 * MS,
					  .waking = 1 * MS,
					  .preempted = 10 * MS,
					  .exits = 3,
					  .wakeups = 1});
	put_exits(&made, 100, MADE_INTR, 2,
		  (struct vp_exit_account){.kernel = 3 * MS, .stolen = 42 * MS});
	put_exits(&made, 100, MADE_HLT, 1,
		  (struct vp_exit_account){.kernel = 2 * MS, .blocked = 14 * MS, .waking = MS});
	put_thief(&made, 100, VP_STATE_IRQ, VP_BY_VECTOR, VP_IRQ_LOCAL_TIMER, 2 * MS, 1);
	put_thief(&made, 100, VP_STATE_PREEMPTED, VP_BY_TASK, THIEF, 10 * MS, 1);
	put_thief(&made, 100, VP_STATE_PREEMPTED, VP_BY_TASK, OTHER, 30 * MS, 1);
	put_thief(&made, 100, VP_STATE_WAKING, VP_BY_NOBODY, 0, MS, 1);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, 0);
	made_trace_end(&made, 1, 100);
}

struct cut_sums {
	uint64_t wall, states[VP_STATES], exits, wakeups, preemptions;
	uint64_t by_thief, by_other, by_timer, by_nobody, turns;
	uint64_t npf, intr, hlt, intr_kernel, intr_stolen, hlt_blocked;
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
	}
	vp_vec_each (&account->costs, cost) {
		sums->npf += cost->reason == MADE_NPF ? cost->count : 0;
		sums->intr += cost->reason == MADE_INTR ? cost->count : 0;
		sums->hlt += cost->reason == MADE_HLT ? cost->count : 0;
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

/* Two borders, in all states: in a wait that goes on in the next interval, too. */
static void test_windows_sum(void **state)
{
	struct cut_sums whole = {0};

	add_window(MADE_START, AT(100), &whole);
	assert_int_equal(whole.wall, 100 * MS);
	assert_int_equal(whole.by_other, 30 * MS);
	assert_int_equal(whole.turns, 4);
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
			assert_memory_equal(&parts, &whole, sizeof(parts));
		}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_windows_sum),
	    cmocka_unit_test(test_exact),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
