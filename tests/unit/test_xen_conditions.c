/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Triggers of a flight recorder in Xen's records: when each fires, for whom, and by whom. */
#include "unit.h"

#include "schema/account_terms.h"
#include "xen/xen_condition_ops.h"
#include "xen/xen_conditions.h"

struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret);
void __wrap_vp_xen_close(struct vp_xen *xen);

enum {
	RUNNING,
	RUNNABLE,
	BLOCKED,
	OFFLINE,
	FIRST = 5,
	SECOND,
	IDLE = VP_XEN_DOMID_IDLE,
	MS = 1000000
};

static struct vp_xen_states states;
static struct vp_condition_watch *watch;
static const struct vp_condition_ops *ops;
static struct vp_xen_cpupool pool;
static struct vp_xen_domain domain;

static int get_domains(void *xen, uint32_t first, unsigned max, struct vp_xen_domain *ret)
{
	*ret = domain;
	return first <= domain.id;
}

static struct vp_xen_cpupool *get_pool(void *xen, uint32_t id)
{
	return &pool;
}

static void free_pool(void *xen, struct vp_xen_cpupool *of)
{
}

static struct vp_xen here = {.call = {.domain_getinfolist = get_domains,
				      .cpupool_getinfo = get_pool,
				      .cpupool_infofree = free_pool}};

struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret)
{
	*ret = &here;
	return NULL;
}

void __wrap_vp_xen_close(struct vp_xen *xen)
{
}

static void take(uint64_t time, struct vp_xen_record record)
{
	const struct vp_xen_traced traced = {.time = time, .pcpu = 3, .record = record};

	vp_xen_conditions_take(watch, &states, &traced);
	vp_xen_states_take(&states, &traced);
}

static void change(uint64_t time, uint16_t of, uint8_t before, uint8_t after)
{
	take(time, (struct vp_xen_record){
		       .event = VP_XEN_RUNSTATE, .domain = of, .before = before, .after = after});
}

static void leave(uint64_t time, uint32_t reason)
{
	take(time, (struct vp_xen_record){.event = VP_XEN_EXIT, .reason = reason});
}

static void enter(uint64_t time)
{
	take(time, (struct vp_xen_record){.event = VP_XEN_ENTRY});
}

static int setup(void **state)
{
	vp_xen_states_init(&states, VP_VENDOR_AMD, false);
	ops = vp_xen_condition_ops();
	pool = (struct vp_xen_cpupool){.id = 0, .scheduler = 6};
	domain = (struct vp_xen_domain){.id = FIRST, .flags = VP_XEN_HVM};
	return 0;
}

static int teardown(void **state)
{
	if (watch)
		ops->free(watch);
	watch = NULL;
	vp_xen_states_deinit(&states);
	return 0;
}

static void open_watch(struct vp_conditions conditions, bool every_vm)
{
	expect_no_error(ops->open(&conditions, every_vm, &watch));
	assert_true(ops->fd(watch) < 0);
}

static void expect_fired(struct vp_fired expected)
{
	struct vp_fired fired;

	assert_true(ops->take(watch, &fired));
	assert_int_equal(fired.kind, expected.kind);
	assert_int_equal(fired.time, expected.time);
	assert_int_equal(fired.ns, expected.ns);
	assert_int_equal(fired.pid, expected.pid);
	assert_int_equal(fired.tid, vp_xen_tid(expected.pid - 1, 0));
	assert_int_equal(fired.vcpu, 0);
	assert_int_equal(fired.cpu, 3);
	assert_int_equal(fired.reason, expected.reason);
	assert_int_equal(fired.thief_pid, expected.thief_pid);
	assert_int_equal(fired.thief_ns, expected.thief_ns);
	assert_false(ops->take(watch, &fired));
}

static void expect_none(void)
{
	struct vp_fired fired;

	assert_false(ops->take(watch, &fired));
}

/* The second domain has the pCPU twice, the idle vCPU in between; the first waits for 21 ms. */
static void preempt(uint64_t from)
{
	change(from, FIRST, RUNNING, RUNNABLE);
	change(from, SECOND, RUNNABLE, RUNNING);
	change(from + 12 * MS, SECOND, RUNNING, BLOCKED);
	change(from + 12 * MS, IDLE, RUNNABLE, RUNNING);
	change(from + 13 * MS, IDLE, RUNNING, RUNNABLE);
	change(from + 13 * MS, SECOND, RUNNABLE, RUNNING);
	change(from + 21 * MS, SECOND, RUNNING, BLOCKED);
	change(from + 21 * MS, FIRST, RUNNABLE, RUNNING);
}

static void test_steal(void **state)
{
	open_watch((struct vp_conditions){.wanted = {true}, .ns = {20 * MS}}, true);
	change(10, FIRST, RUNNABLE, RUNNING);
	preempt(MS); /* not armed */
	expect_none();
	assert_int_equal(ops->dropped(watch), 0);
	ops->arm(watch);
	change(30 * MS, FIRST, RUNNING, RUNNABLE);
	change(50 * MS, FIRST, RUNNABLE, RUNNING); /* not longer than the limit */
	expect_none();
	preempt(100 * MS);
	preempt(200 * MS); /* counted only */
	expect_fired((struct vp_fired){.kind = VP_FIRED_STEAL,
				       .time = 121 * MS,
				       .ns = 21 * MS,
				       .pid = FIRST + 1,
				       .thief_pid = SECOND + 1,
				       .thief_ns = 20 * MS});
	assert_int_equal(ops->dropped(watch), 1);
	ops->arm(watch);
	expect_none();
	/* Sleep is not steal; neither is a pause. */
	change(300 * MS, FIRST, RUNNING, BLOCKED);
	change(400 * MS, FIRST, BLOCKED, RUNNABLE);
	change(401 * MS, FIRST, RUNNABLE, RUNNING);
	change(500 * MS, FIRST, RUNNING, OFFLINE);
	change(600 * MS, FIRST, OFFLINE, RUNNABLE);
	change(601 * MS, FIRST, RUNNABLE, RUNNING);
	expect_none();
	/* A wakeup counts, too. The pCPU was idle. */
	change(700 * MS, FIRST, RUNNING, BLOCKED);
	change(700 * MS, IDLE, RUNNABLE, RUNNING);
	change(800 * MS, FIRST, BLOCKED, RUNNABLE);
	change(825 * MS, IDLE, RUNNING, RUNNABLE);
	change(825 * MS, FIRST, RUNNABLE, RUNNING);
	expect_fired((struct vp_fired){
	    .kind = VP_FIRED_STEAL, .time = 825 * MS, .ns = 25 * MS, .pid = FIRST + 1});
}

static void test_wakeup(void **state)
{
	open_watch((struct vp_conditions){.wanted = {[VP_CONDITION_WAKEUP] = true},
					  .ns = {[VP_CONDITION_WAKEUP] = 5 * MS}},
		   true);
	ops->arm(watch);
	change(10, FIRST, RUNNABLE, RUNNING);
	preempt(MS);
	expect_none();
	change(30 * MS, FIRST, RUNNING, BLOCKED);
	change(30 * MS, SECOND, RUNNABLE, RUNNING);
	change(40 * MS, FIRST, BLOCKED, RUNNABLE);
	change(46 * MS, SECOND, RUNNING, RUNNABLE);
	change(46 * MS, FIRST, RUNNABLE, RUNNING);
	expect_fired((struct vp_fired){.kind = VP_FIRED_WAKEUP,
				       .time = 46 * MS,
				       .ns = 6 * MS,
				       .pid = FIRST + 1,
				       .thief_pid = SECOND + 1,
				       .thief_ns = 6 * MS});
}

/* With preemption and sleep meanwhile; a halt lasts as long as the guest wants. */
static void test_exit(void **state)
{
	open_watch((struct vp_conditions){.wanted = {[VP_CONDITION_EXIT] = true},
					  .ns = {[VP_CONDITION_EXIT] = 20 * MS}},
		   true);
	ops->arm(watch);
	change(10, FIRST, RUNNABLE, RUNNING);
	leave(1 * MS, 0x78);
	enter(100 * MS);
	leave(101 * MS, 0x60);
	enter(121 * MS);
	enter(200 * MS); /* without an exit */
	expect_none();
	leave(300 * MS, 0x60);
	preempt(301 * MS);
	enter(323 * MS);
	expect_fired((struct vp_fired){.kind = VP_FIRED_EXIT,
				       .time = 323 * MS,
				       .ns = 23 * MS,
				       .pid = FIRST + 1,
				       .reason = 0x60,
				       .thief_pid = SECOND + 1,
				       .thief_ns = 20 * MS});
}

static void test_throttled(void **state)
{
	open_watch((struct vp_conditions){.wanted = {[VP_CONDITION_THROTTLED] = true}}, true);
	ops->arm(watch);
	change(10, FIRST, RUNNABLE, RUNNING);
	change(MS, FIRST, RUNNING, OFFLINE); /* paused */
	change(2 * MS, FIRST, OFFLINE, RUNNABLE);
	change(2 * MS, FIRST, RUNNABLE, RUNNING);
	expect_none();
	vp_xen_states_cap(&states, FIRST, true);
	change(3 * MS, FIRST, RUNNING, OFFLINE);
	expect_fired(
	    (struct vp_fired){.kind = VP_FIRED_THROTTLED, .time = 3 * MS, .pid = FIRST + 1});
}

/* Only VMs that were added, and records from the recording's begin on. */
static void test_chosen(void **state)
{
	open_watch((struct vp_conditions){.wanted = {true}, .ns = {20 * MS}}, false);
	ops->arm(watch);
	change(10, FIRST, RUNNABLE, RUNNING);
	preempt(MS);
	expect_none();
	assert_int_equal(ops->dropped(watch), 0);
	ops->add(watch, FIRST + 1);
	ops->add(watch, FIRST + 1);
	states.begin = 200 * MS;
	preempt(100 * MS);
	expect_none();
	preempt(300 * MS);
	expect_fired((struct vp_fired){.kind = VP_FIRED_STEAL,
				       .time = 321 * MS,
				       .ns = 21 * MS,
				       .pid = FIRST + 1,
				       .thief_pid = SECOND + 1,
				       .thief_ns = 20 * MS});
}

static void test_not_possible(void **state)
{
	const struct vp_conditions throttled = {.wanted = {[VP_CONDITION_THROTTLED] = true}};

	pool.scheduler = 9;
	expect_error(ops->open(&throttled, true, &watch), "scheduler 'null' has no caps");
	pool.scheduler = 5;
	open_watch(throttled, true);
	/* Without accounting, nothing would be seen. */
	expect_error(ops->check(watch), "need vCPU accounting");
	vp_xen_conditions_join(watch);
	expect_no_error(ops->check(watch));
	/* The recorder is done; the accounting goes on. */
	ops->free(watch);
	preempt(MS);
	vp_xen_conditions_leave(watch);
	watch = NULL;
	const struct vp_conditions exit = {.wanted = {[VP_CONDITION_EXIT] = true}};
	assert_null(ops->missing(&exit));
	assert_null(ops->missing(&throttled));
	domain.flags = 0;
	assert_non_null(strstr(ops->missing(&exit), "PV guests have no VM exits"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_steal),     TEST(test_wakeup), TEST(test_exit),
	    TEST(test_throttled), TEST(test_chosen), TEST(test_not_possible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
