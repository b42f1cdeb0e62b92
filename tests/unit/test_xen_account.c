/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of Xen's domains: what it asks of Xen, and what becomes of each traced record. */
#include "unit.h"

#include "base/buffer.h"
#include "bpf/account_abi.h"
#include "schema/account_terms.h"
#include "xen/states.h"
#include "xen/xen_account.h"
#include "xen/xen_events.h"

enum { BEGIN = 1000 };

struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret);
void __wrap_vp_xen_close(struct vp_xen *xen);
struct vp_error *__wrap_vp_xen_buffers_open(struct vp_xen *xen, struct vp_xen_buffers **ret);
struct vp_error *__wrap_vp_xen_buffers_start(struct vp_xen_buffers *buffers, uint32_t mask);
void __wrap_vp_xen_buffers_stop(struct vp_xen_buffers *buffers);
void __wrap_vp_xen_buffers_close(struct vp_xen_buffers *buffers);
uint64_t __wrap_vp_xen_buffers_drain(struct vp_xen_buffers *buffers,
				     void (*take)(void *context,
						  const struct vp_xen_traced *traced),
				     void *context);
uint64_t __wrap_vp_xen_buffers_lost(const struct vp_xen_buffers *buffers);
uint32_t __wrap_vp_xen_events_mask(const struct vp_hypervisor_events *events);
void __wrap_vp_xen_events_add(struct vp_hypervisor_events *events,
			      const struct vp_xen_traced *traced, uint32_t vm, uint32_t vcpu);
void __wrap_vp_xen_events_note_lost(struct vp_hypervisor_events *events, uint64_t lost);
void __wrap_vp_xen_states_cap(struct vp_xen_states *states, uint32_t domain, bool capped);

/* Domain 0 with one vCPU, domain 5 with two. */
static struct vp_xen_domain domains[2];
static struct vp_xen_credit credits[2];
static struct vp_xen_vcpu vcpus[2][2];
static size_t n_domains;

static const struct vp_xen_traced *traced;
static size_t n_traced;
static uint64_t known;

/* A line for each thing that is asked or told. */
static struct vp_buffer said;

static size_t place_of(uint32_t domain)
{
	return domain == 0 ? 0 : domain == 5 ? 1 : SIZE_MAX;
}

static int get_domains(void *xen, uint32_t first, unsigned max, struct vp_xen_domain *ret)
{
	for (size_t i = 0; i < n_domains; i++)
		if (domains[i].id >= first) {
			*ret = domains[i];
			return 1;
		}
	return 0;
}

static int get_vcpu(void *xen, uint32_t domain, uint32_t vcpu, struct vp_xen_vcpu *ret)
{
	if (place_of(domain) == SIZE_MAX || vcpu > 1)
		return -1;
	*ret = vcpus[place_of(domain)][vcpu];
	return 0;
}

/* Xen answers for the scheduler in use only. */
static bool older;

static int get_credit2(void *xen, uint32_t domain, struct vp_xen_credit *ret)
{
	*ret = credits[place_of(domain)];
	return older ? -1 : 0;
}

static int get_credit(void *xen, uint32_t domain, struct vp_xen_credit *ret)
{
	*ret = credits[place_of(domain)];
	return older ? 0 : -1;
}

static struct vp_xen here = {.call = {.domain_getinfolist = get_domains,
				      .vcpu_getinfo = get_vcpu,
				      .sched_credit2_domain_get = get_credit2,
				      .sched_credit_domain_get = get_credit}};

struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret)
{
	*ret = &here;
	return NULL;
}

void __wrap_vp_xen_close(struct vp_xen *xen)
{
	vp_buffer_string(&said, "close\n");
}

struct vp_error *__wrap_vp_xen_buffers_open(struct vp_xen *xen, struct vp_xen_buffers **ret)
{
	*ret = (void *)&n_traced;
	return NULL;
}

struct vp_error *__wrap_vp_xen_buffers_start(struct vp_xen_buffers *buffers, uint32_t mask)
{
	vp_buffer_printf(&said, "start %x\n", mask);
	return NULL;
}

void __wrap_vp_xen_buffers_stop(struct vp_xen_buffers *buffers)
{
	vp_buffer_string(&said, "stop\n");
}

void __wrap_vp_xen_buffers_close(struct vp_xen_buffers *buffers)
{
}

uint64_t __wrap_vp_xen_buffers_drain(struct vp_xen_buffers *buffers,
				     void (*take)(void *context,
						  const struct vp_xen_traced *traced),
				     void *context)
{
	for (size_t i = 0; i < n_traced; i++)
		take(context, &traced[i]);
	n_traced = 0;
	return known;
}

uint64_t __wrap_vp_xen_buffers_lost(const struct vp_xen_buffers *buffers)
{
	return 17;
}

uint32_t __wrap_vp_xen_events_mask(const struct vp_hypervisor_events *events)
{
	return 0x1f000000;
}

void __wrap_vp_xen_events_add(struct vp_hypervisor_events *events,
			      const struct vp_xen_traced *record, uint32_t vm, uint32_t vcpu)
{
	vp_buffer_printf(&said, "event %llu %d %d\n", (unsigned long long)record->time, (int)vm,
			 (int)vcpu);
}

void __wrap_vp_xen_events_note_lost(struct vp_hypervisor_events *events, uint64_t lost)
{
	vp_buffer_printf(&said, "lost %llu\n", (unsigned long long)lost);
}

void __wrap_vp_xen_states_cap(struct vp_xen_states *states, uint32_t domain, bool capped)
{
	vp_buffer_printf(&said, "domain %u %s\n", domain, capped ? "capped" : "free");
}

static void expect_said(const char *expected)
{
	assert_string_equal(vp_buffer_text(&said), expected);
	said.size = 0;
}

static int setup(void **state)
{
	domains[0] = (struct vp_xen_domain){.id = 0, .last_vcpu = 0};
	domains[1] = (struct vp_xen_domain){.id = 5, .last_vcpu = 1};
	n_domains = 2;
	memset(credits, 0, sizeof(credits));
	vcpus[0][0] = (struct vp_xen_vcpu){.online = 1, .running = 1, .pcpu = 2};
	vcpus[1][0] = (struct vp_xen_vcpu){.online = 1, .running = 1, .pcpu = 3};
	vcpus[1][1] = (struct vp_xen_vcpu){.online = 1, .blocked = 1, .pcpu = 3};
	n_traced = 0;
	known = 0;
	said.size = 0;
	return 0;
}

static int teardown(void **state)
{
	vp_buffer_deinit(&said);
	said = (struct vp_buffer){0};
	return 0;
}

static struct vp_account_source *open_account(struct vp_account_source_options options)
{
	const vp_vms vms = {0};
	struct vp_account_source *source;

	expect_no_error(vp_xen_account_ops()->open(&vms, &options, &source));
	return source;
}

static void test_masks(void **state)
{
	struct vp_hypervisor_events *events = (void *)&known;
	const struct vp_account_ops *ops = vp_xen_account_ops();
	struct vp_account_source *source = open_account((struct vp_account_source_options){0});

	expect_no_error(ops->prepare(source));
	ops->free(source);
	expect_said("start a1000\nclose\n");
	source = open_account((struct vp_account_source_options){.paravirtual = true});
	expect_no_error(ops->prepare(source));
	ops->free(source);
	expect_said("start 2a1000\nclose\n");
	source = open_account((struct vp_account_source_options){.events = events});
	expect_no_error(ops->prepare(source));
	ops->free(source);
	expect_said("start 1f0a1000\nclose\n");
}

/* A paused domain's vCPUs are offline, but not for its cap. */
static void test_caps(void **state)
{
	const struct vp_account_ops *ops = vp_xen_account_ops();
	struct vp_account_source *source = open_account((struct vp_account_source_options){0});
	const vp_vms vms = {0};

	credits[1].cap = 50;
	ops->begin(source, &vms, BEGIN);
	expect_said("domain 0 free\ndomain 5 capped\n");
	domains[1].flags = VP_XEN_PAUSED;
	ops->gather(source, BEGIN + 1);
	expect_said("domain 0 free\ndomain 5 free\n");
	/* Once a second. */
	domains[1].flags = 0;
	ops->gather(source, BEGIN + 1000000000);
	expect_said("");
	older = true;
	ops->gather(source, BEGIN + 1000000001);
	expect_said("domain 0 free\ndomain 5 capped\n");
	older = false;
	ops->end(source);
	ops->gather(source, BEGIN + 5000000000);
	expect_said("stop\n");
	ops->free(source);
}

/* States with which vCPUs begin, as Xen has them without a trace. */
static void test_seeds(void **state)
{
	static const struct {
		struct vp_xen_vcpu vcpu;
		uint32_t flags;
		uint32_t expected;
	} cases[] = {
	    {{.online = 1, .running = 1}, 0, VP_STATE_GUEST},
	    {{.online = 1, .blocked = 1}, 0, VP_STATE_HALTED},
	    {{.online = 1}, 0, VP_STATE_WAKING},
	    {{.online = 1}, VP_XEN_PAUSED, VP_STATE_WAITING},
	    {{.online = 1}, VP_XEN_SHUTDOWN, VP_STATE_WAITING},
	    {{.online = 1}, VP_XEN_HVM, VP_STATE_WAKING},
	    {{.online = 0, .running = 1}, 0, VP_STATE_WAITING},
	};
	const struct vp_account_ops *ops = vp_xen_account_ops();

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		struct vp_account_source *source =
		    open_account((struct vp_account_source_options){0});
		struct vp_account_vcpu vcpu = {0};
		const vp_vms vms = {0};
		size_t found = 0;
		vcpus[1][0] = cases[i].vcpu;
		domains[1].flags = cases[i].flags;
		ops->begin(source, &vms, BEGIN);
		for (size_t place = 0; place < ops->slots(source); place++)
			if (ops->vcpu(source, place, &vcpu) && vcpu.pid == 6 && !vcpu.number) {
				found++;
				assert_int_equal(vcpu.begin, BEGIN);
				assert_int_equal(vcpu.state, VP_STATE_UNKNOWN);
				if (vcpu.asleep != cases[i].expected)
					fail_msg("case %zu: state %u", i, vcpu.asleep);
			}
		assert_int_equal(found, 1);
		ops->free(source);
	}
}

static struct vp_xen_traced other_at(uint64_t time, uint32_t pcpu)
{
	return (struct vp_xen_traced){.time = time, .pcpu = pcpu, .record.event = VP_XEN_OTHER};
}

/* Events are of the vCPU that had the pCPU before them, and not from before the begin. */
static void test_events(void **state)
{
	struct vp_hypervisor_events *events = (void *)&known;
	const struct vp_account_ops *ops = vp_xen_account_ops();
	struct vp_account_source *source =
	    open_account((struct vp_account_source_options){.events = events});
	struct vp_xen_traced records[] = {other_at(BEGIN - 1, 3),
					  other_at(BEGIN, 3),
					  {.time = BEGIN + 10,
					   .pcpu = 3,
					   .record = {.event = VP_XEN_RUNSTATE,
						      .domain = 5,
						      .vcpu = 0,
						      .before = VP_XEN_RUNNING,
						      .after = VP_XEN_BLOCKED}},
					  other_at(BEGIN + 11, 3),
					  other_at(BEGIN + 12, 2),
					  {.time = BEGIN + 20,
					   .pcpu = 3,
					   .record = {.event = VP_XEN_RUNSTATE,
						      .domain = 5,
						      .vcpu = 1,
						      .before = VP_XEN_RUNNABLE,
						      .after = VP_XEN_RUNNING}},
					  other_at(BEGIN + 21, 3)};
	const vp_vms vms = {0};

	ops->begin(source, &vms, BEGIN);
	expect_said("domain 0 free\ndomain 5 free\n");
	traced = records;
	n_traced = VP_ARRAY_SIZE(records);
	known = BEGIN + 30;
	assert_int_equal(ops->gather(source, BEGIN + 40), BEGIN + 30);
	expect_said("event 1000 6 0\nevent 1010 6 0\nevent 1011 -1 -1\nevent 1012 1 0\n"
		    "event 1020 -1 -1\nevent 1021 6 1\nlost 17\ndomain 0 free\ndomain 5 free\n");
	/* What is known never gets less. */
	known = BEGIN + 20;
	assert_int_equal(ops->gather(source, BEGIN + 50), BEGIN + 30);
	assert_int_equal(ops->lost_events(source), 17);
	ops->free(source);
}

/* A domain that is gone ends with what is known of it; others go on. */
static void test_ends(void **state)
{
	const struct vp_account_ops *ops = vp_xen_account_ops();
	struct vp_account_source *source = open_account((struct vp_account_source_options){0});
	struct vp_account_vcpu vcpu;
	const vp_vms vms = {0};
	size_t gone = 0, others = 0;

	ops->begin(source, &vms, BEGIN);
	n_domains = 1;
	known = BEGIN + 50;
	ops->gather(source, BEGIN + 100);
	known = BEGIN + 200;
	ops->gather(source, BEGIN + 300);
	for (size_t place = 0; place < ops->slots(source); place++)
		if (ops->vcpu(source, place, &vcpu)) {
			gone += vcpu.state == VP_STATE_GONE && vcpu.pid == 6;
			others += vcpu.state != VP_STATE_GONE && vcpu.pid == 1;
		}
	assert_int_equal(gone, 2);
	assert_int_equal(others, 1);
	ops->free(source);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_masks), TEST(test_caps), TEST(test_seeds), TEST(test_events), TEST(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
