/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's trace records, and the states of vCPUs that are worked out from them. */
#include "unit.h"

#include <sys/mman.h>

#include "schema/exit_reason.h"
#include "xen/frames.h"
#include "xen/states.h"
#include "xen/xen_events.h"
#include "xen/xen_order.h"

enum { RUNNING, RUNNABLE, BLOCKED, OFFLINE };

static struct vp_xen_record read_words(const uint32_t *words, size_t count)
{
	struct vp_cursor cursor = vp_cursor_of(words, count * sizeof(*words));
	struct vp_xen_record record;

	assert_true(vp_xen_record_read(&cursor, &record));
	assert_int_equal(vp_cursor_left(&cursor), 0);
	assert_false(vp_xen_record_read(&cursor, &record));
	return record;
}
#define READ(...)                                                                                  \
	read_words((const uint32_t[]){__VA_ARGS__},                                                \
		   sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void test_records(void **state)
{
	struct vp_xen_record record = READ(0x90021121, 0x10, 0x2, 0x00050003);

	assert_int_equal(record.event, VP_XEN_RUNSTATE);
	assert_int_equal(record.tsc, 0x200000010);
	assert_int_equal(record.domain, 5);
	assert_int_equal(record.vcpu, 3);
	assert_int_equal(record.before, VP_XEN_RUNNABLE);
	assert_int_equal(record.after, VP_XEN_BLOCKED);

	record = READ(0xb0081102, 1, 0, 0x60, 0x11aee7eb, 0x5620);
	assert_int_equal(record.event, VP_XEN_EXIT);
	assert_int_equal(record.reason, 0x60);
	assert_int_equal(record.ip, 0x562011aee7eb);
	record = READ(0xb0081103, 1, 0, 0x7b, 0x11aee7eb, 0x5620); /* of AMD since 4.19 */
	assert_int_equal(record.event, VP_XEN_EXIT);
	assert_int_equal(record.reason, 0x7b);
	assert_int_equal(READ(0x80081001, 1, 0).event, VP_XEN_ENTRY);

	record = READ(0xc001f001, 1, 0, 42, 0x10002, 5, 6);
	assert_int_equal(record.event, VP_XEN_LOST);
	assert_int_equal(record.count, 42);
	assert_int_equal(record.since, 0x600000005);
	assert_int_equal(READ(0x9001f001, 1, 0, 42).since, UINT64_MAX);
	assert_int_equal(READ(0x8001f002, 1, 0).event, VP_XEN_OTHER);
}

static void expect_work(struct vp_xen_record record, const char *name, uint64_t ip)
{
	char text[VP_EXIT_NAME_SIZE];

	assert_int_equal(record.event, VP_XEN_WORK);
	assert_string_equal(vp_exit_reason_name(VP_VENDOR_INTEL, record.reason, text), name);
	assert_string_equal(vp_exit_reason_name(VP_VENDOR_AMD, record.reason, text), name);
	assert_int_equal(record.has_ip, ip != 0);
	if (ip)
		assert_int_equal(record.ip, ip);
	assert_false(vp_exit_reason_has_time(record.reason));
	assert_false(vp_exit_reason_is_halt(VP_VENDOR_INTEL, record.reason));
}

/* What a PV guest enters Xen for; the bit 0x100 says that addresses have two words. */
static void test_work(void **state)
{
	expect_work(READ(0x9020100d, 1, 0, 0x0010000c), "memory_op", 0);
	expect_work(READ(0xb020100d, 1, 0, 0x0050001d, 2, 3), "sched_op", 0);
	expect_work(READ(0x9020100d, 1, 0, 0xb), "hypercall 11", 0);
	expect_work(READ(0xb0201103, 1, 0, 0x81000010, 0xffffffff, 0x0000800d), "trap 13",
		    0xffffffff81000010);
	expect_work(READ(0xa0201003, 1, 0, 0xc1000010, 7), "trap 7", 0xc1000010);
	expect_work(READ(0xd0201104, 1, 0, 0x401000, 0, 0x7000, 0, 6), "page fault", 0x401000);
	expect_work(READ(0xa0201106, 1, 0, 0x81000020, 0xffffffff), "privileged instruction",
		    0xffffffff81000020);
	expect_work(READ(0x80201008, 1, 0), "FPU's state", 0);
	expect_work(READ(0xe020110b, 1, 0, 1, 2, 3, 4, 0x81000030, 0xffffffff), "page-table write",
		    0xffffffff81000030);
	expect_work(READ(0xc020100c, 1, 0, 1, 2, 3, 0xc1000030), "page-table write", 0xc1000030);
	expect_work(READ(0xa0201163, 1, 0, 0x1000, 0), "work 99", 0x1000);
	/* Without their words: nothing. */
	assert_int_equal(READ(0x8020100d, 1, 0).event, VP_XEN_OTHER);
	assert_int_equal(READ(0xa0201103, 1, 0, 0x81000010, 0xffffffff).event, VP_XEN_OTHER);
	assert_int_equal(READ(0xd020110b, 1, 0, 1, 2, 3, 4, 5).event, VP_XEN_OTHER);
	assert_int_equal(READ(0x9020200e, 1, 0, 1).event, VP_XEN_OTHER); /* of a multicall */
}

static void test_cut_short(void **state)
{
	static const uint32_t words[] = {0xb0081102, 1, 0, 0x60, 0x11aee7eb, 0x5620};
	struct vp_xen_record record;

	for (size_t size = 0; size < sizeof(words); size++) {
		struct vp_cursor cursor = vp_cursor_of(words, size);
		assert_false(vp_xen_record_read(&cursor, &record));
		assert_int_equal(vp_cursor_ok(&cursor), size == 0);
	}
	assert_int_equal(READ(0x80081102, 1, 0).event, VP_XEN_OTHER); /* without its words */
	assert_int_equal(READ(0x80021121, 1, 0).event, VP_XEN_OTHER);
}

/* A record that has fewer words than its event may have: the rest is 0, not what follows it. */
static void test_short_record(void **state)
{
	static const uint32_t words[] = {0xa0081102, 0x10,   0x2,    0x60,   0x11aee7eb,
					 0x5620,     0x5620, 0x5620, 0x5620, 0x5620,
					 0x5620,     0x5620, 0x5620, 0x5620};
	struct vp_cursor cursor = vp_cursor_of(words, sizeof(words));
	struct vp_xen_record record;

	assert_true(vp_xen_record_read(&cursor, &record));
	assert_int_equal(record.event, VP_XEN_EXIT);
	assert_int_equal(record.reason, 0x60);
	assert_int_equal(record.ip, 0x11aee7eb);
}

struct scene {
	struct vp_xen_states states;
};

static int begin(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	vp_xen_states_init(&scene->states, VP_VENDOR_AMD, true);
	scene->states.begin = 1000;
	*state = scene;
	return 0;
}

static int end(void **state)
{
	struct scene *scene = *state;

	vp_xen_states_deinit(&scene->states);
	free(scene);
	return 0;
}

static void change(struct scene *scene, uint64_t time, uint32_t pcpu, uint16_t domain, int before,
		   int after)
{
	struct vp_xen_traced traced = {.time = time,
				       .pcpu = pcpu,
				       .record = {.event = VP_XEN_RUNSTATE,
						  .domain = domain,
						  .before = (uint8_t)before,
						  .after = (uint8_t)after}};

	vp_xen_states_take(&scene->states, &traced);
}

static void step(struct scene *scene, uint64_t time, enum vp_xen_event event, uint32_t reason,
		 uint64_t ip)
{
	struct vp_xen_traced traced = {.time = time,
				       .record = {.event = event, .reason = reason, .ip = ip}};

	vp_xen_states_take(&scene->states, &traced);
}

static const struct vp_account_vcpu *vcpu_of(const struct scene *scene, uint16_t domain)
{
	for (uint32_t i = 0; i < scene->states.n_slots; i++)
		if (scene->states.vcpus[i].pid == vp_xen_vm_number(domain) &&
		    scene->states.vcpus[i].number == 0)
			return &scene->states.vcpus[i];
	fail_msg("domain %u has no vCPU", domain);
	return NULL;
}

/* What a thief took of a domain's vCPU 0: another domain's, or of that kind. */
static uint64_t taken(const struct scene *scene, uint16_t victim, int thief, uint32_t kind)
{
	uint64_t sum = 0;

	vp_vec_each (&scene->states.thieves, found) {
		const struct vp_account_vcpu *owner = &scene->states.vcpus[found->key.vcpu];
		bool is_thief = kind != VP_BY_VCPU || scene->states.vcpus[found->key.id].pid ==
							  vp_xen_vm_number((uint32_t)thief);
		if (owner == vcpu_of(scene, victim) && found->key.kind == kind && is_thief)
			sum += found->cost.ns;
	}
	return sum;
}

static void test_thieves(void **state)
{
	struct scene *scene = *state;

	vp_xen_states_seed(&scene->states, 1, 0, VP_XEN_RUNNABLE, 0, 1000);
	vp_xen_states_seed(&scene->states, 2, 0, VP_XEN_RUNNING, 0, 1000);
	change(scene, 900, 0, 2, RUNNABLE, RUNNING); /* before the beginning: nothing */
	change(scene, 1500, 0, 2, RUNNING, RUNNABLE);
	change(scene, 1510, 0, 0, RUNNABLE, RUNNING); /* the switch is 2's */
	change(scene, 1700, 0, 0, RUNNING, BLOCKED);
	change(scene, 1705, 0, VP_XEN_DOMID_IDLE, RUNNABLE, RUNNING);
	change(scene, 1800, 0, VP_XEN_DOMID_IDLE, RUNNING, RUNNABLE);
	change(scene, 1800, 0, 1, RUNNABLE, RUNNING);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_WAKING], 800);
	assert_int_equal(vcpu_of(scene, 1)->wakes[0], 0); /* its wakeup was not seen */
	assert_int_equal(taken(scene, 1, 2, VP_BY_VCPU), 500);
	assert_int_equal(taken(scene, 1, 0, VP_BY_VCPU), 200);
	assert_int_equal(taken(scene, 1, 0, VP_BY_NOBODY), 100);
	assert_int_equal(taken(scene, 1, 0, VP_BY_UNKNOWN), 0);
	change(scene, 2500, 0, 1, RUNNING, RUNNABLE);
	change(scene, 2500, 0, 2, RUNNABLE, RUNNING);
	assert_int_equal(vcpu_of(scene, 2)->states[VP_STATE_PREEMPTED], 1000);
	assert_int_equal(vcpu_of(scene, 2)->preemptions, 1);
	for (size_t i = 0; i < VP_WAKE_BUCKETS; i++)
		assert_int_equal(vcpu_of(scene, 2)->wakes[i], 0);
	assert_int_equal(taken(scene, 2, 1, VP_BY_VCPU), 700);
	assert_int_equal(taken(scene, 2, 0, VP_BY_VCPU), 200);
	vp_xen_states_emit_gone(&scene->states, 0, 3000); /* of domain 1 */
	vp_xen_states_end_gone(&scene->states);
	assert_int_equal(vcpu_of(scene, 1)->end, 3000);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_PREEMPTED], 500);
	assert_int_equal(vcpu_of(scene, 2)->end, 0);
}

/* A vCPU that is paused while it waits, as for a sample of its context, is woken twice: all of its
 * time in waking is in a bucket. */
static void test_paused_wait(void **state)
{
	struct scene *scene = *state;
	const struct vp_account_vcpu *vcpu;
	uint64_t ns = 0;

	change(scene, 1000, 0, 1, BLOCKED, RUNNABLE);
	change(scene, 21000, 0, 1, RUNNABLE, OFFLINE);
	change(scene, 21500, 0, 1, OFFLINE, RUNNABLE);
	change(scene, 22000, 0, 1, RUNNABLE, RUNNING);
	vcpu = vcpu_of(scene, 1);
	assert_int_equal(vcpu->states[VP_STATE_WAKING], 20500);
	assert_int_equal(vcpu->states[VP_STATE_WAITING], 500);
	assert_int_equal(vcpu->wakeups, 2);
	assert_int_equal(vcpu->wakes[0], 1);
	assert_int_equal(vcpu->wakes[1], 1);
	for (size_t i = 0; i < VP_WAKE_BUCKETS; i++)
		ns += vcpu->wake_ns[i];
	assert_int_equal(ns, 20500);
}

static void test_long_wait(void **state)
{
	struct scene *scene = *state;
	uint64_t time = 2000;

	change(scene, time, 0, 1, BLOCKED, RUNNABLE);
	change(scene, time, 0, 2, RUNNABLE, RUNNING);
	for (int i = 0; i < 2 * VP_XEN_SLICES; i++) { /* more than are kept */
		change(scene, time += 10, 0, (uint16_t)(2 + i % 2), RUNNING, BLOCKED);
		change(scene, time, 0, (uint16_t)(3 - i % 2), BLOCKED, RUNNING);
	}
	change(scene, time, 0, 2, RUNNING, BLOCKED);
	change(scene, time, 0, 1, RUNNABLE, RUNNING);
	uint64_t sum = taken(scene, 1, 2, VP_BY_VCPU) + taken(scene, 1, 3, VP_BY_VCPU);
	assert_true(taken(scene, 1, 0, VP_BY_UNKNOWN) > 0);
	assert_int_equal(sum + taken(scene, 1, 0, VP_BY_UNKNOWN), time - 2000);
}

/* Who had the pCPU before the wait began is charged from then on. */
static void test_wait_within_slice(void **state)
{
	struct scene *scene = *state;

	vp_xen_states_seed(&scene->states, 2, 0, VP_XEN_RUNNING, 0, 1000);
	change(scene, 1500, 1, 1, BLOCKED, RUNNABLE);
	change(scene, 1900, 0, 2, RUNNING, BLOCKED);
	change(scene, 1900, 0, 1, RUNNABLE, RUNNING);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_WAKING], 400);
	assert_int_equal(vcpu_of(scene, 1)->wakes[0], 1);
	assert_int_equal(vcpu_of(scene, 1)->wake_ns[0], 400);
	assert_int_equal(taken(scene, 1, 2, VP_BY_VCPU), 400);
	assert_int_equal(taken(scene, 1, 0, VP_BY_UNKNOWN), 0);
	/* The place of one that was released is charged nothing from before. */
	uint32_t place = (uint32_t)(vcpu_of(scene, 1) - scene->states.vcpus);
	vp_xen_states_release(&scene->states, place);
	vp_vec_each (&scene->states.thieves, found)
		assert_true(found->key.vcpu != place || !found->cost.ns);
}

/* The latest span of a domain's vCPU 0. */
static const struct vp_vcpu_span *last_span(const struct scene *scene, uint32_t domain)
{
	for (size_t i = scene->states.spans.count; i--;)
		if (scene->states.spans.at[i].vm == vp_xen_vm_number(domain))
			return &scene->states.spans.at[i];
	fail_msg("domain %u has no span", domain);
	return NULL;
}

static void test_spans(void **state)
{
	struct scene *scene = *state;
	const unsigned got = VP_STATE_GOT_PCPU, idle = VP_STATE_WAS_IDLE;

	vp_xen_states_seed(&scene->states, 2, 0, VP_XEN_RUNNING, 0, 1000);
	change(scene, 1100, 0, 1, BLOCKED, RUNNABLE);
	change(scene, 1200, 0, 2, RUNNING, BLOCKED);
	change(scene, 1200, 0, 1, RUNNABLE, RUNNING);
	assert_int_equal(last_span(scene, 1)->state, VP_STATE_WAKING);
	assert_int_equal(last_span(scene, 1)->flags & (got | idle), got);
	step(scene, 1300, VP_XEN_EXIT, 0x78, 0x5000);
	step(scene, 1350, VP_XEN_ENTRY, 0, 0);
	assert_int_equal(last_span(scene, 1)->state, VP_STATE_KERNEL);
	assert_int_equal(last_span(scene, 1)->ns, 50);
	assert_true(last_span(scene, 1)->flags & VP_HAS_EXIT_REASON);
	assert_int_equal(last_span(scene, 1)->reason, 0x78);
	change(scene, 1400, 0, 1, RUNNING, BLOCKED); /* the exit is over */
	assert_int_equal(last_span(scene, 1)->state, VP_STATE_GUEST);
	assert_false(last_span(scene, 1)->flags & VP_HAS_EXIT_REASON);
	change(scene, 1400, 0, VP_XEN_DOMID_IDLE, RUNNABLE, RUNNING);
	change(scene, 1500, 0, 1, BLOCKED, RUNNABLE);
	change(scene, 1510, 0, VP_XEN_DOMID_IDLE, RUNNING, RUNNABLE);
	change(scene, 1510, 0, 1, RUNNABLE, RUNNING);
	assert_int_equal(last_span(scene, 1)->flags & (got | idle), got | idle);
}

/* Time in Xen is time that the vCPU had a pCPU, too, up to the moment that is asked for. */
static void test_ran(void **state)
{
	struct scene *scene = *state;
	struct vp_xen_ran ran;

	assert_false(vp_xen_states_ran(&scene->states, 1, 0, 1000, &ran));
	change(scene, 1100, 0, 1, RUNNABLE, RUNNING);
	step(scene, 1200, VP_XEN_EXIT, 0x60, 0x4000);
	step(scene, 1250, VP_XEN_ENTRY, 0, 0);
	assert_true(vp_xen_states_ran(&scene->states, 1, 0, 1300, &ran));
	assert_int_equal(ran.ns, 200);
	assert_int_equal(ran.open_exit, 0);
	step(scene, 1400, VP_XEN_EXIT, 0x60, 0x4000);
	assert_true(vp_xen_states_ran(&scene->states, 1, 0, 1410, &ran));
	assert_int_equal(ran.ns, 310);
	assert_int_equal(ran.open_exit, 1400);
	change(scene, 1450, 0, 1, RUNNING, BLOCKED);
	assert_true(vp_xen_states_ran(&scene->states, 1, 0, 2000, &ran));
	assert_int_equal(ran.ns, 350);
}

static void test_exits(void **state)
{
	struct scene *scene = *state;

	change(scene, 1100, 0, 1, RUNNABLE, RUNNING);
	step(scene, 1200, VP_XEN_EXIT, 0x60, 0x4000);
	step(scene, 1250, VP_XEN_ENTRY, 0, 0);
	step(scene, 1300, VP_XEN_EXIT, 0x78, 0x5000);
	change(scene, 1310, 0, 1, RUNNING, BLOCKED);
	change(scene, 1400, 0, 1, BLOCKED, RUNNABLE);
	change(scene, 1440, 0, 1, RUNNABLE, RUNNING);
	step(scene, 1450, VP_XEN_ENTRY, 0, 0);
	step(scene, 1460, VP_XEN_EXIT, 0x60, 0x4000);
	const struct vp_account_vcpu *vcpu = vcpu_of(scene, 1);
	const struct vp_account_exit *rows = scene->states.exits[vcpu - scene->states.vcpus];
	assert_int_equal(vcpu->reasons, 2);
	assert_int_equal(vcpu->exits, 2);
	assert_int_equal(rows[0].total, 50);
	assert_int_equal(rows[1].reason, 0x78);
	assert_int_equal(rows[1].total, 150);
	assert_int_equal(rows[1].blocked, 90);
	assert_int_equal(rows[1].waking, 40);
	assert_int_equal(vcpu->states[VP_STATE_KERNEL], 50 + 10 + 10);
	assert_int_equal(vcpu->states[VP_STATE_HALTED], 90);
	/* Another one, in which it is preempted and waits at its cap: none of the blocked time. */
	vp_xen_states_cap(&scene->states, 1, true);
	change(scene, 1470, 0, 1, RUNNING, RUNNABLE);
	change(scene, 1500, 0, 1, RUNNABLE, OFFLINE);
	change(scene, 1600, 0, 1, OFFLINE, RUNNABLE);
	change(scene, 1605, 0, 1, RUNNABLE, RUNNING);
	step(scene, 1610, VP_XEN_ENTRY, 0, 0);
	assert_int_equal(rows[0].total, 50 + 150);
	assert_int_equal(rows[0].stolen, 30 + 100);
	assert_int_equal(rows[0].waking, 5);
	assert_int_equal(rows[0].blocked, 0);
	/* Their places waited as long. */
	uint64_t sum = 0, idle = 0, stolen = 0;
	for (size_t i = 0; i < VP_EXIT_SITES; i++) {
		idle += scene->states.sites[vcpu - scene->states.vcpus][i].idle;
		stolen += scene->states.sites[vcpu - scene->states.vcpus][i].stolen;
	}
	assert_int_equal(idle, 90);
	assert_int_equal(stolen, 40 + 30 + 100 + 5);
	for (int i = 0; i < VP_STATES; i++)
		sum += vcpu->states[i];
	assert_int_equal(sum, vcpu->since - vcpu->begin);
}

/* Its count is known, and where it was; the time goes on as the guest's. */
static void test_counted_work(void **state)
{
	struct scene *scene = *state;
	struct vp_xen_traced traced = {
	    .time = 1300, .record = {.event = VP_XEN_WORK, .reason = VP_PARAVIRTUAL | 29}};

	vp_xen_states_seed(&scene->states, 1, 0, VP_XEN_RUNNING, 0, 1000);
	vp_xen_states_take(&scene->states, &traced);
	traced.record.reason = VP_PARAVIRTUAL | (VP_PARAVIRTUAL_WORK + 4);
	traced.record.has_ip = true;
	traced.record.ip = 0x401000;
	for (; traced.time < 1320; traced.time += 10)
		vp_xen_states_take(&scene->states, &traced);
	change(scene, 1400, 0, 1, RUNNING, BLOCKED);

	const struct vp_account_vcpu *vcpu = vcpu_of(scene, 1);
	assert_int_equal(vcpu->states[VP_STATE_GUEST], 400);
	assert_int_equal(vcpu->exits, 3);
	assert_int_equal(vcpu->reasons, 2);
	assert_int_equal(scene->states.exits[0][0].count, 1);
	assert_int_equal(scene->states.exits[0][1].count, 2);
	assert_int_equal(scene->states.exits[0][1].total, 0);
	uint64_t placed = 0;
	for (size_t i = 0; i < VP_EXIT_SITES; i++)
		placed += scene->states.sites[0][i].count;
	assert_int_equal(placed, 2);
}

static void test_sites(void **state)
{
	struct scene *scene = *state;
	uint64_t counted = 0;

	change(scene, 1100, 0, 1, RUNNABLE, RUNNING);
	for (uint64_t i = 0; i < 4 * VP_EXIT_SITES;
	     i++) { /* more than there are counters; each twice */
		step(scene, 2000 + 10 * i, VP_XEN_EXIT, 0x60, 0x4000 + i % (2 * VP_EXIT_SITES));
		step(scene, 2005 + 10 * i, VP_XEN_ENTRY, 0, 0);
	}
	uint32_t place = (uint32_t)(vcpu_of(scene, 1) - scene->states.vcpus);
	for (int i = 0; i < VP_EXIT_SITES; i++)
		counted += scene->states.sites[place][i].count;
	vp_vec_each (&scene->states.old_sites, site)
		counted += site->cost.count;
	assert_int_equal(counted, 4 * VP_EXIT_SITES);
	assert_true(scene->states.old_sites.count <= 2 * VP_EXIT_SITES);
}

static void test_offline(void **state)
{
	struct scene *scene = *state;

	change(scene, 1100, 0, 1, RUNNING, OFFLINE);
	change(scene, 1200, 0, 1, OFFLINE, RUNNABLE);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_WAITING], 100);
	vp_xen_states_cap(&scene->states, 1, true);
	change(scene, 1210, 0, 1, RUNNABLE, RUNNING);
	change(scene, 1300, 0, 1, RUNNING, OFFLINE);
	change(scene, 1350, 0, 1, OFFLINE, RUNNABLE);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_THROTTLED], 50);
}

/* A domain that was destroyed: it was offline since then, and was still listed before. */
static void test_destroyed(void **state)
{
	struct scene *scene = *state;

	vp_xen_states_seed(&scene->states, 1, 0, VP_XEN_RUNNING, 0, 1000);
	change(scene, 1600, 0, 1, RUNNING, OFFLINE);
	vp_xen_states_emit_gone(&scene->states, 0, 1500);
	vp_xen_states_end_gone(&scene->states);
	assert_int_equal(vcpu_of(scene, 1)->end, 1600);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_GUEST], 600);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_WAITING], 0);
	/* Xen 4.20 has one more event of it, later. */
	change(scene, 2000, 0, 1, BLOCKED, OFFLINE);
	assert_int_equal(scene->states.n_slots, 1);
	assert_int_equal(vcpu_of(scene, 1)->end, 1600);
	/* Its number is another domain's. */
	change(scene, 3000, 0, 1, RUNNABLE, RUNNING);
	assert_int_equal(scene->states.n_slots, 2);
}

/* It was missed at two looks before all that it did was known: it ended before the first. */
static void test_missed_twice(void **state)
{
	struct scene *scene = *state;

	vp_xen_states_seed(&scene->states, 1, 0, VP_XEN_RUNNING, 0, 1000);
	change(scene, 1600, 0, 1, RUNNING, RUNNABLE);
	vp_xen_states_emit_gone(&scene->states, 0, 1500);
	vp_xen_states_emit_gone(&scene->states, 0, 2500);
	vp_xen_states_end_gone(&scene->states);
	assert_int_equal(vcpu_of(scene, 1)->end, 1600);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_PREEMPTED], 0);
}

/* One that runs all the time has no switch, and yet exits. */
static void test_seeded(void **state)
{
	struct scene *scene = *state;

	vp_xen_states_seed(&scene->states, 1, 0, VP_XEN_RUNNING, 0, 1000);
	step(scene, 1200, VP_XEN_EXIT, 0x60, 0x4000);
	step(scene, 1250, VP_XEN_ENTRY, 0, 0);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_GUEST], 200);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_KERNEL], 50);
}

/* A record was lost: what the next one says counts. */
static void test_lost(void **state)
{
	struct scene *scene = *state;

	change(scene, 1100, 0, 1, RUNNABLE, RUNNING);
	change(scene, 1300, 0, 1, BLOCKED, RUNNABLE);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_HALTED], 200);
	assert_int_equal(vcpu_of(scene, 1)->states[VP_STATE_GUEST], 0);
}

static void test_places(void **state)
{
	struct scene *scene = *state;

	for (uint32_t i = 0; i <= VP_XEN_SLOTS; i++)
		vp_xen_states_seed(&scene->states, i / 8 + 1, i % 8, VP_XEN_BLOCKED, 0, 1000);
	assert_int_equal(scene->states.lost.vcpus, 1);
	vp_xen_states_release(&scene->states, 5);
	vp_xen_states_seed(&scene->states, 500, 0, VP_XEN_BLOCKED, 0, 2000);
	assert_int_equal(scene->states.lost.vcpus, 1);
	assert_int_equal(scene->states.vcpus[5].pid, vp_xen_vm_number(500));
	/* Who had the place comes again: it is not its any more. */
	vp_xen_states_seed(&scene->states, 1, 5, VP_XEN_RUNNABLE, 0, 2200);
	assert_int_equal(scene->states.lost.vcpus, 2);
	assert_int_equal(scene->states.vcpus[5].asleep, VP_STATE_HALTED);
}

static void expect_no_event(const char *name, const char *said)
{
	struct vp_hypervisor_events *events = NULL;

	expect_error(vp_xen_events_ops()->open(&name, 1, &events), said);
	assert_null(events);
}

static void add_event(struct vp_hypervisor_events *events, struct vp_xen_record record)
{
	const struct vp_xen_traced traced = {.time = 5000, .pcpu = 2, .record = record};

	vp_xen_events_add(events, &traced, 7, 1);
}

/* The next record is of that event, and its fields behind the first three are these numbers, each
 * element of a sequence by itself. */
static void expect_event(const struct vp_buffer *records, size_t *at,
			 const vp_event_classes *classes, const char *name, size_t count,
			 const uint64_t *numbers)
{
	const struct vp_defined_record *record = (const void *)(records->bytes + *at);
	const struct vp_event_class *event = vp_event_classes_find(classes, record->id);
	const uint64_t first[] = {2, 7, 1};
	struct vp_cursor fields = vp_event_fields(record);
	size_t seen = 0;

	assert_true(*at < records->size && event);
	assert_string_equal(event->name, name);
	assert_int_equal(record->time, 5000);
	assert_true(vp_event_is_whole(event, record));
	*at += record->size;
	vp_vec_each (&event->fields, field) {
		struct vp_event_value value;
		size_t place = (size_t)(field - event->fields.at);
		assert_true(vp_event_next_value(&fields, field, &value));
		if (place < VP_ARRAY_SIZE(first)) {
			assert_int_equal(value.number, first[place]);
			continue;
		}
		struct vp_cursor words = vp_cursor_of(value.bytes.bytes, value.bytes.size);
		if (field->shape == VP_EVENT_INTEGER)
			assert_true(seen < count && value.number == numbers[seen++]);
		while (field->shape == VP_EVENT_SEQUENCE && vp_cursor_left(&words))
			assert_true(seen < count && vp_cursor_u32(&words) == numbers[seen++]);
	}
	assert_int_equal(seen, count);
}
#define EXPECT_EVENT(name, ...)                                                                    \
	expect_event(records, &at, &classes, name,                                                 \
		     sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),                   \
		     (const uint64_t[]){__VA_ARGS__})

static void test_events(void **state)
{
	static const char *const names[] = {"sched", "CR_*", "page_fault"};
	struct vp_hypervisor_events *events;
	vp_event_classes classes = {0};
	size_t at = 0;

	expect_no_error(vp_xen_events_ops()->open(names, VP_ARRAY_SIZE(names), &events));
	assert_int_equal(vp_xen_events_mask(events), 0x002af000);
	expect_no_error(vp_xen_events_ops()->define(events, &classes));
	add_event(events, READ(0x90021121, 1, 0, 0x00050003));
	add_event(events, READ(0xb0082108, 1, 0, 4, 0x11, 0x22)); /* the address has two words */
	add_event(events, READ(0xa0082009, 1, 0, 3, 0x33));
	add_event(events, READ(0xb0201004, 1, 0, 0x10, 0x20, 6));
	add_event(events, READ(0xb0022203, 1, 0, 0x00010000, 0xffffffff, 5)); /* a word too few */
	add_event(events, READ(0x9002ffff, 1, 0, 9));                         /* of a later Xen */
	add_event(events, READ(0x80081001, 1, 0));                            /* not asked for */
	add_event(events, READ(0x9001f001, 1, 0, 42));
	struct vp_buffer *records = vp_xen_events_ops()->take(events);
	EXPECT_EVENT("xentrace:runnable_to_blocked", 5, 3);
	EXPECT_EVENT("xentrace:CR_READ", 4, 0x2200000011);
	EXPECT_EVENT("xentrace:CR_WRITE", 3, 0x33);
	EXPECT_EVENT("xentrace:page_fault", 0x10, 0x20, 6);
	EXPECT_EVENT("xentrace:other", 0x22203, 0x10000, 0xffffffff, 5);
	EXPECT_EVENT("xentrace:other", 0x2ffff, 9);
	assert_int_equal(at, records->size);
	assert_int_equal(vp_xen_events_ops()->take(events)->size, 0);
	vp_xen_events_ops()->free(events);
	vp_event_classes_deinit(&classes);
	expect_no_event("domain_wakeup", "did you mean domain_wake");
	expect_no_event("", "classes of events are gen, sched");
}

/* Records of several buffers, one of which is not in order itself. */
static void test_order(void **state)
{
	static const uint64_t times[] = {5, 6, 9, 2, 5, 12, 1, 1, 7, 6, 6, 20};
	static const uint32_t expected[] = {6, 7, 3, 0, 4, 1, 9, 10, 8, 2, 5, 11};
	struct vp_xen_traced records[VP_ARRAY_SIZE(times)] = {{0}};
	struct vp_xen_order order = {0};

	for (size_t i = 0; i < VP_ARRAY_SIZE(times); i++)
		records[i].time = times[i];
	for (int again = 0; again < 2; again++) {
		vp_xen_order_find(&order, records, VP_ARRAY_SIZE(times));
		assert_int_equal(order.indices.count, VP_ARRAY_SIZE(times));
		assert_memory_equal(order.indices.at, expected, sizeof(expected));
	}
	vp_xen_order_find(&order, records, 1);
	assert_int_equal(order.indices.count, 1);
	vp_xen_order_find(&order, records, 0);
	assert_int_equal(order.indices.count, 0);
	vp_xen_order_deinit(&order);
}

static unsigned long frames_there;

static int tell_frames(void *xen, unsigned long *ret)
{
	*ret = frames_there; /* Xen's max_page: one more than the last */
	return 0;
}

/* As Xen does it: a piece of its table that there is not is no answer at all. */
static int tell_table(void *xen, unsigned long max, uint64_t *ret)
{
	unsigned long pieces = (frames_there * 8 + (2 << 20) - 1) / (2 << 20);

	if (max > pieces)
		return -1;
	for (unsigned long i = 0; i < max; i++)
		ret[i] = 512 * i;
	return 0;
}

static void *map_table(void *memory, uint32_t domain, int protection, size_t pages,
		       const uint64_t *frames, int *errors)
{
	return mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Memory ends at a multiple of 1 GiB on most hosts: there the table ends with a whole piece. */
static void test_table_of_frames(void **state)
{
	static const unsigned long gib = 1UL << 18;
	const unsigned long sizes[] = {gib / 2,     5 * gib / 2, 5 * gib,
				       5 * gib + 1, 6 * gib - 1, 1024 * gib};
	struct vp_xen xen = {.call = {.maximum_ram_page = tell_frames,
				      .machphys_mfn_list = tell_table,
				      .memory_map = map_table}};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct vp_xen_frames frames;
		frames_there = sizes[i];
		expect_no_error(vp_xen_frames_map(&xen, &frames));
		assert_true(frames.count >= frames_there);
		assert_int_equal(vp_xen_frames_translate(&frames, (frames_there - 1) * 4096 + 5),
				 5);
		assert_int_equal(vp_xen_frames_translate(&frames, frames.count * 4096), UINT64_MAX);
		vp_xen_frames_unmap(&frames);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table_of_frames),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_records),
	    cmocka_unit_test(test_cut_short),
	    cmocka_unit_test(test_short_record),
	    cmocka_unit_test(test_work),
	    cmocka_unit_test(test_events),
	    cmocka_unit_test_setup_teardown(test_thieves, begin, end),
	    cmocka_unit_test_setup_teardown(test_paused_wait, begin, end),
	    cmocka_unit_test_setup_teardown(test_long_wait, begin, end),
	    cmocka_unit_test_setup_teardown(test_wait_within_slice, begin, end),
	    cmocka_unit_test_setup_teardown(test_spans, begin, end),
	    cmocka_unit_test_setup_teardown(test_ran, begin, end),
	    cmocka_unit_test_setup_teardown(test_exits, begin, end),
	    cmocka_unit_test_setup_teardown(test_counted_work, begin, end),
	    cmocka_unit_test_setup_teardown(test_sites, begin, end),
	    cmocka_unit_test_setup_teardown(test_offline, begin, end),
	    cmocka_unit_test_setup_teardown(test_destroyed, begin, end),
	    cmocka_unit_test_setup_teardown(test_missed_twice, begin, end),
	    cmocka_unit_test_setup_teardown(test_seeded, begin, end),
	    cmocka_unit_test_setup_teardown(test_lost, begin, end),
	    cmocka_unit_test_setup_teardown(test_places, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
