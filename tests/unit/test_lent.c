/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lent counters as the host and the agent write them: cells of several CPUs, a thread that runs on
 * one of them, looks of other threads. What happens while the library waits, the test does in
 * nanosleep()'s place.
 */
#include "lent_memory.h"

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/* The host publishes. */
static void publish(unsigned cpu)
{
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		memory.cells[cpu].counts[i] += MORE;
	memory.cells[cpu].stolen += MORE;
	memory.cells[cpu].sequence++;
}

static void publish_here(void)
{
	publish(thread_here()->cpu);
}

/* The thread goes on on the last CPU, and that publishes. */
static void move(void)
{
	struct vp_lent_thread *thread = thread_here();
	const struct vp_lent_cell *from = &memory.cells[thread->cpu], *to = &memory.cells[CPUS - 1];

	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		thread->base[i] += from->counts[i] - to->counts[i];
	thread->stolen_base += from->stolen - to->stolen;
	thread->cpu = CPUS - 1;
	thread->sequence += 4;
	publish(CPUS - 1);
}

static void test_each_counter_on_each_cpu(void **state)
{
	uint64_t start[VPERF_MAX_EVENTS], values[VPERF_MAX_EVENTS];

	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		start[i] = i * i;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		thread_here()->cpu = cpu;
		for (unsigned n = 1; n <= VP_LENT_EVENTS; n++) {
			lent.n = n;
			memset(values, 0xee, sizeof(values));
			assert_true(vp_counters_lent_read_own(&lent, start, values));
			for (unsigned i = 0; i < n; i++) {
				unsigned index = VP_LENT_EVENTS - 1 - i;
				assert_int_equal(values[i],
						 base_of(index) + count_of(cpu, index) - start[i]);
			}
			for (unsigned i = n; i < VP_LENT_EVENTS; i++)
				assert_int_equal(values[i], 0xeeeeeeeeeeeeeeee);
		}
	}
}

/* The host cannot count on that CPU, or has gone; or the thread has missed something, and its cell
 * is nobody's. */
static void test_lost(void **state)
{
	const uint64_t start[VPERF_MAX_EVENTS] = {0};
	uint64_t values[VPERF_MAX_EVENTS], stolen;

	memory.cells[1].marker = 0;
	assert_false(vp_counters_lent_read_own(&lent, start, values));
	assert_int_equal(vp_counters_lent_read(&lent, false, start, values), VPERF_E_LOST);
	assert_int_equal(vp_counters_lent_stolen(&lent, &stolen), VPERF_E_LOST);
	memory.cells[1].marker = MARKER + 1; /* an earlier agent's */
	assert_false(vp_counters_lent_read_own(&lent, start, values));
	thread_here()->cpu = 2; /* there it can */
	assert_true(vp_counters_lent_read_own(&lent, start, values));
	assert_int_equal(vp_counters_lent_read(&lent, false, start, values), VPERF_OK);
	assert_int_equal(vp_counters_lent_stolen(&lent, &stolen), VPERF_OK);
	thread_here()->cpu = CPUS;
	assert_false(vp_counters_lent_read_own(&lent, start, values));
}

static void test_stolen_and_stints(void **state)
{
	uint64_t stolen;

	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		thread_here()->cpu = cpu;
		assert_int_equal(vp_counters_lent_stolen(&lent, &stolen), VPERF_OK);
		assert_int_equal(stolen, 40 + 500 * (cpu + 1));
	}
	assert_int_equal(vp_counters_lent_runs(&lent), 2);
	thread_here()->sequence = 11;
	assert_int_equal(vp_counters_lent_runs(&lent), 2);
	thread_here()->sequence = 12;
	assert_int_equal(vp_counters_lent_runs(&lent), 3);
}

#if defined(__x86_64__)

/* Has the processor trap behind each instruction; what shall happen then happens behind one of
 * them, as an exit from the guest may come anywhere. */
enum { TRAP_FLAG = 0x100, MAX_STEPS = 2000, FURTHER = 500 };
static int steps_before;
static void (*at_step)(void);
static bool publishes_before; /* at each step until then */

static void on_step(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	if (steps_before-- > 0) {
		if (publishes_before)
			publish_here();
		return;
	}
	at_step();
	at_step = NULL;
	interrupted->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static inline __attribute__((always_inline)) void step_from_here(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
			     : "memory", "cc");
}

static inline __attribute__((always_inline)) void step_no_more(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
			     : "memory", "cc");
}

static const uint64_t from_0[VPERF_MAX_EVENTS];
static uint64_t seen[VPERF_MAX_EVENTS];

/* Two events are enough, and each step takes its time. */
enum { STEPPED_EVENTS = 2 };

static int read_once(void)
{
	return vp_counters_lent_read(&lent, false, from_0, seen);
}

static int read_stolen(void)
{
	int status = vp_counters_lent_stolen(&lent, &seen[0]);

	seen[1] = seen[0]; /* as if it were two counters */
	return status;
}

static int read_exactly(void)
{
	return vp_counters_lent_read(&lent, true, from_0, seen);
}

static int look_here(void)
{
	struct vp_counters_lent_state state;
	int status = vp_counters_lent_read_state(&lent, &state);

	seen[0] = state.counts[1];
	seen[1] = state.counts[0];
	return status;
}

static void setup_stepped(void)
{
	setup(NULL);
	lent.n = lent.events = STEPPED_EVENTS;
	lent.indices[0] = 1;
	lent.indices[1] = 0;
}

/* How often what was read was what it was before anything happened, is from afterwards, or is
 * lost. */
struct outcomes {
	unsigned before, after, lost;
	int steps; /* of the longest read */
};

/* Has that happen behind each `stride`th instruction of a read, one after the other, up to the one
 * with number `most`: all values are of one moment. */
static struct outcomes read_at_each_step(int (*read)(void), void (*happens)(void), int stride,
					 int most)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct outcomes ret = {0};
	uint64_t first[VPERF_MAX_EVENTS];

	sigaction(SIGTRAP, &action, NULL);
	setup_stepped();
	if (read == read_stolen)
		read_stolen();
	else
		read_once();
	memcpy(first, seen, sizeof(first));
	bool happened = true;
	for (int step = 0; happened && step < most; step += stride) {
		setup_stepped();
		steps_before = step;
		at_step = happens;
		step_from_here();
		int status = read();
		step_no_more();
		happened = !at_step;
		ret.steps = step;
		uint64_t newer = seen[0] - first[0];
		ret.lost += status != VPERF_OK;
		if (status != VPERF_OK)
			continue;
		if (newer != seen[1] - first[1] || newer % MORE ||
		    newer / MORE > (unsigned)step + 1)
			fail_msg("step %d: %llu and %llu more", step, (unsigned long long)newer,
				 (unsigned long long)(seen[1] - first[1]));
		ret.before += !newer;
		ret.after += newer != 0;
	}
	signal(SIGTRAP, SIG_DFL);
	return ret;
}

static void (*const happenings[])(void) = {publish_here, move};

/* Whatever comes between two instructions of a read. */
static void test_read_is_of_one_moment(void **state)
{
	static int (*const reads[])(void) = {read_once, read_stolen};

	publishes_before = false;
	for (unsigned i = 0; i < 4; i++) {
		struct outcomes of =
		    read_at_each_step(reads[i / 2], happenings[i % 2], 1, MAX_STEPS);
		assert_true(of.steps < MAX_STEPS - 1);
		assert_int_equal(of.lost, 0);
		assert_true(of.before && of.after);
	}
}

/* An exact read forces the host to publish: what it has is from after that, or it is lost. Where
 * that publishes, too, as often as can be, it is still of one moment. */
static void test_exact_read(void **state)
{
	static int (*const reads[])(void) = {read_exactly, look_here};
	uint64_t values[VPERF_MAX_EVENTS];

	for (unsigned i = 0; i < 4; i++) {
		publishes_before = false;
		struct outcomes of =
		    read_at_each_step(reads[i / 2], happenings[i % 2], 1, MAX_STEPS);
		assert_true(of.steps < MAX_STEPS - 1);
		assert_int_equal(of.before, 0);
		assert_true(of.after && of.lost);
		publishes_before = true;
		of = read_at_each_step(reads[i / 2], happenings[i % 2], 7, of.steps + FURTHER);
		assert_int_equal(of.before, 0);
		assert_true(of.after);
	}
	publishes_before = false;
	/* Where nobody publishes. */
	setup(NULL);
	assert_int_equal(vp_counters_lent_read(&lent, false, from_0, values), VPERF_OK);
	assert_int_equal(vp_counters_lent_read(&lent, true, from_0, values), VPERF_E_LOST);
	lent.exact = true;
	assert_int_equal(vp_counters_lent_read(&lent, false, from_0, values), VPERF_E_LOST);
}

#endif

static int look_with(void (*happens)(unsigned nth), struct vp_counters_lent_state *ret)
{
	at_wait = happens;
	waits = 0;
	return vp_counters_lent_read_state(&lent, ret);
}

static void expect_look(const struct vp_counters_lent_state *look, unsigned cpu, uint64_t more)
{
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++) {
		uint64_t of_cell = cpu < CPUS ? count_of(cpu, i) : 0;
		assert_int_equal(look->counts[i], base_of(i) + of_cell + more);
		assert_int_equal(look->at_exec[i], 60 + i);
	}
	assert_int_equal(look->executed, 2);
	assert_int_equal(look->n_children, 9);
	assert_int_equal(look->children_at_exec, 4);
}

static void publish_twice(unsigned nth)
{
	if (nth < 2)
		publish_here();
}

static void publish_once(unsigned nth)
{
	if (!nth)
		publish_here();
}

static void publish_always(unsigned nth)
{
	publish_here();
}

static void leave_cpu(unsigned nth)
{
	struct vp_lent_thread *thread = thread_here();

	if (nth)
		return;
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		thread->base[i] += memory.cells[thread->cpu].counts[i];
	thread->state = VP_LENT_OUT;
	thread->cpu = 0;
	thread->sequence += 2;
}

static void move_once(unsigned nth)
{
	if (!nth)
		move();
}

static void be_switched(unsigned nth)
{
	thread_here()->sequence = nth < 4 ? 9 : 10;
}

/* Its writer is interrupted between two counters, for a while. */
static void be_written_slowly(unsigned nth)
{
	if (nth == 0) {
		thread_here()->sequence++;
		thread_here()->base[0] += MORE;
	} else if (nth == 4) {
		thread_here()->base[1] += MORE;
		thread_here()->sequence++;
	}
}

/* A thread that runs elsewhere has what its vCPU has published since: that takes two publications,
 * as one may have been under way. */
static void test_look_at_other(void **state)
{
	struct vp_counters_lent_state look;

	lent.tid = gettid() + 1;
	assert_int_equal(look_with(publish_twice, &look), VPERF_OK);
	expect_look(&look, 1, 2 * MORE);
	assert_int_equal(waits, 3);

	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(publish_once, &look), VPERF_E_LOST);
	assert_int_equal(waits, VP_COUNTERS_MAX_WAITS);

	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(publish_always, &look), VPERF_E_LOST);

	/* It is switched out, or to another CPU, meanwhile. */
	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(leave_cpu, &look), VPERF_OK);
	expect_look(&look, 1, 0);
	assert_int_equal(waits, 2);
	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(move_once, &look), VPERF_OK);
	expect_look(&look, 1, MORE);

	/* Its writer is at work for a while. */
	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(be_switched, &look), VPERF_OK);
	assert_int_equal(waits, 6);

	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(be_written_slowly, &look), VPERF_OK);
	assert_int_equal(waits, 6);
	assert_int_equal(look.counts[0] - look.counts[1],
			 base_of(0) + count_of(1, 0) - base_of(1) - count_of(1, 1));

	/* It missed something, or its CPU's counts are not known. */
	for (int missed = 0; missed < 2; missed++) {
		setup(NULL);
		lent.tid = gettid() + 1;
		memory.cells[1].marker = missed ? MARKER : 0;
		thread_here()->stale = (unsigned)missed;
		assert_int_equal(look_with(be_switched, &look), VPERF_E_LOST);
		assert_int_equal(waits, 6);
	}
}

/* One that does not run has nothing in any cell. */
static void test_look_at_one_that_is_out(void **state)
{
	struct vp_counters_lent_state look;

	lent.tid = gettid() + 1;
	thread_here()->state = VP_LENT_OUT;
	assert_int_equal(look_with(NULL, &look), VPERF_OK);
	expect_look(&look, CPUS, 0);
	assert_int_equal(waits, 1);
}

static void settle_late(unsigned nth)
{
	memory.runs[2].sequence = nth < 3 ? 1 : 4;
}

static void publish_nothing(unsigned nth)
{
	if (nth < 4)
		memory.cells[0].sequence++;
}

/* Of a family, some run: two on two CPUs, of which one is switched just now. */
static void test_family_on_several_cpus(void **state)
{
	uint64_t counts[VP_LENT_EVENTS];
	struct vp_lent_thread *thread = thread_here();
	uint32_t live = 0;

	thread->live = 4;
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		thread->children[i] = 1 + i;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		memory.runs[cpu] = (struct vp_lent_run){
		    .runs = cpu != 1, .index = PLACE, .born = 3, .sequence = 2};
		for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
			memory.runs[cpu].start[i] = count_of(cpu, i) - 10 * (cpu + 1) - i;
	}
	at_wait = settle_late;
	waits = 0;
	assert_int_equal(vp_counters_lent_children(&lent, counts, &live), VPERF_OK);
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		assert_int_equal(counts[i], 1 + i + 10 + i + 30 + i);
	assert_int_equal(live, 4);
	assert_int_equal(waits, 5);
	/* What counts nothing is published on one of its CPUs for a while. */
	at_wait = publish_nothing;
	waits = 0;
	assert_int_equal(vp_counters_lent_children(&lent, counts, &live), VPERF_OK);
	assert_int_equal(waits, 5);
	/* Of another place, or an earlier family of this one. */
	at_wait = NULL;
	memory.runs[0].index = PLACE + 1;
	memory.runs[2].born = 2;
	assert_int_equal(vp_counters_lent_children(&lent, counts, &live), VPERF_OK);
	assert_int_equal(counts[3], 4);
	thread->missed = 1;
	assert_int_equal(vp_counters_lent_children(&lent, counts, &live), VPERF_E_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_each_counter_on_each_cpu, setup),
		cmocka_unit_test_setup(test_lost, setup),
		cmocka_unit_test_setup(test_stolen_and_stints, setup),
#if defined(__x86_64__)
		cmocka_unit_test_setup(test_read_is_of_one_moment, setup),
		cmocka_unit_test_setup(test_exact_read, setup),
#endif
		cmocka_unit_test_setup(test_look_at_other, setup),
		cmocka_unit_test_setup(test_look_at_one_that_is_out, setup),
		cmocka_unit_test_setup(test_family_on_several_cpus, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
