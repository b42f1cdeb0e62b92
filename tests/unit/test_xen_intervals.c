/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intervals of vCPUs from Xen's trace records: where they end, and what they count. */
#include "unit.h"

#include "base/buffer.h"
#include "schema/account_terms.h"
#include "schema/recipe.h"
#include "xen/library.h"
#include "xen/vcpu_intervals.h"

/* Times are in units of 100 ns: the shortest interval has 100. */
enum { START = 100000, SCALE = 100 };
enum { PVH = 5, PV = 6, NPF = 0x400, INTR = 0x60, CPUID = 0x72 };

static struct vp_xen_intervals intervals;
static struct vp_recipe recipe;
static struct vp_buffer out;

/* "domain/vCPU begin-end value ...", "-" without a value; flags after a colon. */
static void take(void *context, uint32_t pcpu, char *records, size_t size)
{
	const struct vp_interval *head = (const void *)records;
	const struct vp_interval_value *values = (const void *)(head + 1);

	assert_int_equal(size, sizeof(*head) + head->values * sizeof(*values));
	vp_buffer_printf(&out, "%u/%u #%u %llu-%llu", head->owner - 1, head->vcpu, head->number,
			 ((unsigned long long)head->begin - START) / SCALE,
			 ((unsigned long long)head->time - START) / SCALE);
	for (uint32_t i = 0; i < head->values; i++) {
		assert_int_equal(values[i].place, i);
		bool is_time = recipe.events.at[i].event.unit[0];
		if (values[i].live)
			vp_buffer_printf(&out, " %llu",
					 (unsigned long long)values[i].value /
					     (is_time ? SCALE : 1));
		else
			vp_buffer_string(&out, " -");
	}
	vp_buffer_printf(&out, head->flags ? " :%u\n" : "\n", head->flags);
}

static bool is_hvm(void *context, uint32_t domain)
{
	return domain == PVH;
}

static void begin(const char *text, bool paravirtual)
{
	expect_no_error(vp_recipe_parse("r", text, strlen(text), &recipe));
	intervals = (struct vp_xen_intervals){
	    .recipe = &recipe, .paravirtual = paravirtual, .is_hvm = is_hvm, .take = take};
	vp_xen_intervals_init(&intervals, VP_VENDOR_AMD);
}

static void expect(const char *expected)
{
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_xen_intervals_deinit(&intervals);
	vp_recipe_deinit(&recipe);
}

static void put(uint64_t time, uint32_t pcpu, struct vp_xen_record record)
{
	const struct vp_xen_traced traced = {
	    .time = START + time * SCALE, .pcpu = pcpu, .record = record};

	vp_xen_intervals_take(&intervals, &traced);
}

static void change(uint64_t time, uint32_t pcpu, uint16_t domain, uint8_t before, uint8_t after)
{
	put(time, pcpu,
	    (struct vp_xen_record){
		.event = VP_XEN_RUNSTATE, .domain = domain, .before = before, .after = after});
}

static void leave(uint64_t time, uint32_t reason)
{
	put(time, 0, (struct vp_xen_record){.event = VP_XEN_EXIT, .reason = reason});
}

static void enter(uint64_t time)
{
	put(time, 0, (struct vp_xen_record){.event = VP_XEN_ENTRY});
}

static void handle(uint64_t time, uint32_t id, uint32_t type)
{
	put(time, 0,
	    (struct vp_xen_record){
		.event = VP_XEN_OTHER, .id = id, .n_words = 6, .words = {0, 0, 0, 0, 0, type}});
}

/* A vCPU of that domain runs since the beginning, on pCPU 0. */
static void begin_running(uint16_t domain)
{
	vp_xen_states_seed(&intervals.states, domain, 0, VP_XEN_RUNNING, 0, START);
	vp_xen_intervals_begin(&intervals, START);
}

/* Intervals by time end at the border: an exit that is open then is divided; the count is in the
 * interval in which it ends. */
static void test_borders(void **state)
{
	begin("interval time 10us\nper vcpu\ncount exits exits:interrupt time time:running "
	      "time:waiting time:blocked time:guest time:exits time:exits:interrupt\n",
	      false);
	begin_running(PVH);
	leave(10, INTR);
	enter(30);
	leave(90, INTR);
	enter(120);
	change(150, 0, PVH, VP_XEN_RUNNING, VP_XEN_RUNNABLE);
	change(190, 0, PVH, VP_XEN_RUNNABLE, VP_XEN_RUNNING);
	change(260, 0, PVH, VP_XEN_RUNNING, VP_XEN_BLOCKED);
	vp_xen_intervals_pass(&intervals, START + 700 * SCALE);
	change(710, 0, PVH, VP_XEN_BLOCKED, VP_XEN_RUNNABLE);
	change(720, 0, PVH, VP_XEN_RUNNABLE, VP_XEN_RUNNING);
	vp_xen_intervals_pass(&intervals, START + 805 * SCALE);
	vp_xen_intervals_end(&intervals, START + 850 * SCALE);
	expect("5/0 #0 0-100 1 1 100 100 0 0 70 30 30\n"
	       "5/0 #1 100-200 1 1 100 60 40 0 40 20 20\n"
	       "5/0 #2 200-700 0 0 500 60 0 440 60 0 0\n"
	       "5/0 #3 700-800 0 0 100 80 10 10 80 0 0\n"
	       "5/0 #4 800-850 0 0 50 50 0 0 50 0 0 :3\n");
}

/* By exits: at the entry after the last one. Accesses to devices are told from other faults. */
static void test_exits(void **state)
{
	begin("interval exits 2\nper vcpu\ncount exits exits:page-fault exits:mmio exits:cpuid "
	      "entries inject:interrupt inject:exception inject:page-fault time:exits:mmio\n",
	      false);
	begin_running(PVH);
	leave(10, NPF);
	handle(11, 0x82021, 4);
	enter(20);
	handle(25, 0x82004, 0); /* without an exit: nothing is open */
	leave(30, NPF);
	handle(31, 0x82021, 0);
	handle(32, 0x82102, 0);
	enter(40);
	leave(50, CPUID);
	handle(51, 0x82003, 0);
	enter(60);
	vp_xen_intervals_end(&intervals, START + 100 * SCALE);
	expect("5/0 #0 0-40 2 1 1 0 2 1 1 1 10\n"
	       "5/0 #1 40-100 1 0 0 1 1 0 1 0 0 :3\n");
}

#define SCHEDULING                                                                                 \
	"interval time 100us\nper vcpu\ncount sched:in sched:out sched:preempted "                 \
	"sched:migrations "                                                                        \
	"wakeups exits exits:hypercall exits:page-fault exits:interrupt time:guest time:exits "    \
	"guest:page-faults\n"

static void run_pv(void)
{
	begin_running(PV);
	put(5, 0, (struct vp_xen_record){.event = VP_XEN_WORK, .reason = VP_PARAVIRTUAL | 29});
	put(6, 0,
	    (struct vp_xen_record){.event = VP_XEN_WORK,
				   .reason = VP_PARAVIRTUAL | (VP_PARAVIRTUAL_WORK + 4)});
	change(10, 0, PV, VP_XEN_RUNNING, VP_XEN_RUNNABLE);
	change(20, 0, PV, VP_XEN_RUNNABLE, VP_XEN_RUNNING);
	change(30, 0, PV, VP_XEN_RUNNING, VP_XEN_BLOCKED);
	change(40, 1, PV, VP_XEN_BLOCKED, VP_XEN_RUNNABLE);
	change(50, 1, PV, VP_XEN_RUNNABLE, VP_XEN_RUNNING);
	vp_xen_intervals_end(&intervals, START + 60 * SCALE);
}

/* PV domains have no exits; what they enter Xen for is counted on request. */
static void test_paravirtual(void **state)
{
	begin(SCHEDULING, false);
	assert_int_equal(vp_xen_intervals_mask(&recipe, false), 0x21000 | 0x81000 | 0x82000);
	run_pv();
	expect("6/0 #0 0-60 2 2 1 1 1 - - - - - - - :3\n");
	begin(SCHEDULING, true);
	assert_int_equal(vp_xen_intervals_mask(&recipe, true),
			 0x21000 | 0x81000 | 0x82000 | 0x201000);
	run_pv();
	expect("6/0 #0 0-60 2 2 1 1 1 2 1 1 - - - - :3\n");
}

/* Intervals in which Xen dropped records are lost, and leave a gap in the numbers. */
static void test_losses(void **state)
{
	begin("interval time 10us\nper vcpu\ncount exits\n", false);
	assert_int_equal(vp_xen_intervals_mask(&recipe, false), 0x21000 | 0x81000);
	begin_running(PVH);
	leave(10, INTR);
	enter(20);
	leave(110, INTR);
	vp_xen_intervals_lose(&intervals, true);
	put(150, 0, (struct vp_xen_record){.event = VP_XEN_LOST, .count = 3});
	enter(160);
	leave(210, INTR);
	vp_xen_intervals_lose(&intervals, false);
	enter(220);
	leave(310, INTR);
	enter(320);
	vp_xen_intervals_end(&intervals, START + 350 * SCALE);
	assert_int_equal(intervals.lost, 2);
	expect("5/0 #0 0-100 1\n5/0 #3 300-350 1 :3\n");
}

/* A state that was missed: the time of closed intervals stays what it was. */
static void test_missed_state(void **state)
{
	begin("interval time 10us\nper vcpu\ncount time:running time:blocked\n", false);
	begin_running(PVH);
	change(10, 0, PVH, VP_XEN_RUNNING, VP_XEN_RUNNABLE);
	change(20, 0, PVH, VP_XEN_RUNNABLE, VP_XEN_RUNNING);
	vp_xen_intervals_pass(&intervals, START + 230 * SCALE);
	change(250, 0, PVH, VP_XEN_BLOCKED, VP_XEN_RUNNABLE);
	vp_xen_intervals_end(&intervals, START + 260 * SCALE);
	expect("5/0 #0 0-100 90 0\n5/0 #1 100-200 100 0\n5/0 #2 200-260 0 50 :3\n");
}

/* A domain that comes has intervals from its first event on; one that is gone, until then. Two
 * vCPUs' intervals are sorted by time. */
static void test_domains(void **state)
{
	begin("interval time 10us\nper vcpu\ncount sched:in time:blocked\n", false);
	begin_running(PVH);
	change(130, 1, PV, VP_XEN_OFFLINE, VP_XEN_RUNNABLE);
	change(140, 1, PV, VP_XEN_RUNNABLE, VP_XEN_RUNNING);
	change(190, 1, PV, VP_XEN_RUNNING, VP_XEN_OFFLINE);
	change(350, 0, PVH, VP_XEN_RUNNING, VP_XEN_BLOCKED);
	vp_xen_intervals_leave(&intervals, vp_xen_states_slot(&intervals.states, PV, 0),
			       START + 360 * SCALE);
	vp_xen_states_release(&intervals.states, vp_xen_states_slot(&intervals.states, PV, 0));
	vp_xen_intervals_end(&intervals, START + 380 * SCALE);
	expect("5/0 #0 0-100 0 0\n"
	       "5/0 #1 100-200 0 0\n"
	       "5/0 #2 200-300 0 0\n"
	       "6/0 #0 130-360 1 170 :3\n"
	       "5/0 #3 300-380 0 30 :3\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_borders),     cmocka_unit_test(test_exits),
	    cmocka_unit_test(test_paravirtual), cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_domains),     cmocka_unit_test(test_missed_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
