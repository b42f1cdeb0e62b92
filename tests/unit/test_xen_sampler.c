/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler of Xen's guests: rounds over a faked Xen, one at a time, at times that the test
 * sets; and its samples in order of time, with all of each vCPU's CPU time accounted. */
#include "unit.h"

#include <linux/types.h>

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "bpf/xen_pmu_abi.h"
#include "collect/programs/guest_sampler.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "xen/context.h"
#include "xen/library.h"
#include "xen/xen_pmu.h"
#include "xen/xen_sampler.h"

enum { PERIOD = 100, POLL = 10, LIST = 100000000 };
enum { DOMAINS = 3, VCPUS = 2 };

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
			   struct timespec *left);
uint64_t __wrap_vp_clock_monotonic(void);
struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret);
void __wrap_vp_xen_close(struct vp_xen *xen);
struct vp_error *__wrap_vp_xen_pmu_open(const struct vp_xen *xen, uint64_t frequency,
					struct vp_xen_pmu **ret);
struct vp_error *__wrap_vp_xen_pmu_begin(struct vp_xen_pmu *pmu);
struct vp_error *__wrap_vp_xen_pmu_end(struct vp_xen_pmu *pmu);
void __wrap_vp_xen_pmu_drain(struct vp_xen_pmu *pmu,
			     void (*take)(void *context, const struct vp_xen_pmu_sample *sample),
			     void *context);
struct vp_xen_pmu_totals __wrap_vp_xen_pmu_totals(const struct vp_xen_pmu *pmu);
void __wrap_vp_xen_pmu_free(struct vp_xen_pmu *pmu);

/* Domain 0, which is never sampled, domain 5 (PVH), and domain 7 (PV). */
static struct {
	struct vp_xen_domain domain;
	bool there;
	struct vp_xen_vcpu vcpus[VCPUS];
	uint64_t contexts[VP_XEN_CONTEXT_SIZE / 8];
	bool has_no_context;
} xen[DOMAINS];

static uint64_t now, read_ns; /* the clock, and how long reading a context takes */
static bool has_frames;
static uint64_t table[1 << 18]; /* Xen's table of frames */

/* The sampler's thread sleeps after each round until the next one is asked for. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned asked, done;
static bool is_ending;

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
			   struct timespec *left)
{
	pthread_mutex_lock(&lock);
	done++;
	pthread_cond_broadcast(&changed);
	while (asked == done && !is_ending)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void run_round(void)
{
	pthread_mutex_lock(&lock);
	asked++;
	pthread_cond_broadcast(&changed);
	while (done != asked)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

uint64_t __wrap_vp_clock_monotonic(void)
{
	return now;
}

static int get_domains(void *control, uint32_t first, unsigned max, struct vp_xen_domain *ret)
{
	for (size_t i = 0; i < DOMAINS; i++)
		if (xen[i].there && xen[i].domain.id >= first) {
			*ret = xen[i].domain;
			return 1;
		}
	return 0;
}

static int get_vcpu(void *control, uint32_t domain, uint32_t vcpu, struct vp_xen_vcpu *ret)
{
	for (size_t i = 0; i < DOMAINS; i++)
		if (xen[i].there && xen[i].domain.id == domain && vcpu < VCPUS) {
			*ret = xen[i].vcpus[vcpu];
			return 0;
		}
	return -1;
}

static int get_context(void *control, uint32_t domain, uint32_t vcpu, void *ret)
{
	now += read_ns;
	for (size_t i = 0; i < DOMAINS; i++)
		if (xen[i].there && xen[i].domain.id == domain && !xen[i].has_no_context) {
			memcpy(ret, xen[i].contexts, sizeof(xen[i].contexts));
			return 0;
		}
	return -1;
}

static int get_maximum(void *control, unsigned long *ret)
{
	*ret = sizeof(table) / sizeof(table[0]);
	return has_frames ? 0 : -1;
}

static int get_list(void *control, unsigned long max, uint64_t *ret)
{
	return 0;
}

static void *map_table(void *memory, uint32_t domain, int protection, size_t pages,
		       const uint64_t *frames, int *errors)
{
	assert_int_equal(domain, VP_XEN_DOMID_XEN);
	void *at =
	    mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(at, table, pages * 4096 < sizeof(table) ? pages * 4096 : sizeof(table));
	return at;
}

static struct vp_xen here = {.call = {.domain_getinfolist = get_domains,
				      .vcpu_getinfo = get_vcpu,
				      .vcpu_getcontext = get_context,
				      .maximum_ram_page = get_maximum,
				      .machphys_mfn_list = get_list,
				      .memory_map = map_table}};
static unsigned n_open;

struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret)
{
	*ret = &here;
	n_open++;
	return NULL;
}

void __wrap_vp_xen_close(struct vp_xen *library)
{
	n_open -= library == &here;
}

/* Interrupts of the counter that are still to be taken. */
static const struct vp_xen_pmu_sample *counted;
static size_t n_counted;
static uint64_t frequency;
static unsigned pmu_begun, pmu_ended;
static struct vp_xen_pmu_totals pmu_totals;

struct vp_error *__wrap_vp_xen_pmu_open(const struct vp_xen *library, uint64_t hz,
					struct vp_xen_pmu **ret)
{
	frequency = hz;
	*ret = (struct vp_xen_pmu *)&pmu_totals;
	return NULL;
}

struct vp_error *__wrap_vp_xen_pmu_begin(struct vp_xen_pmu *pmu)
{
	pmu_begun++;
	return NULL;
}

struct vp_error *__wrap_vp_xen_pmu_end(struct vp_xen_pmu *pmu)
{
	return ++pmu_ended == 1 ? vp_error_new("Xen's mode is not restored") : NULL;
}

void __wrap_vp_xen_pmu_drain(struct vp_xen_pmu *pmu,
			     void (*take)(void *context, const struct vp_xen_pmu_sample *sample),
			     void *context)
{
	for (size_t i = 0; i < n_counted; i++)
		take(context, &counted[i]);
	n_counted = 0;
}

struct vp_xen_pmu_totals __wrap_vp_xen_pmu_totals(const struct vp_xen_pmu *pmu)
{
	return pmu_totals;
}

void __wrap_vp_xen_pmu_free(struct vp_xen_pmu *pmu)
{
}

static void add_domain(size_t place, uint16_t id, uint32_t flags, uint32_t last_vcpu)
{
	xen[place].domain =
	    (struct vp_xen_domain){.id = id, .flags = flags, .last_vcpu = last_vcpu};
	xen[place].there = true;
	xen[place].has_no_context = false;
	for (uint32_t i = 0; i < VCPUS; i++)
		xen[place].vcpus[i] =
		    (struct vp_xen_vcpu){.number = i, .online = i <= last_vcpu, .running = 1};
	memset(xen[place].contexts, 0, sizeof(xen[place].contexts));
	xen[place].contexts[648 / 8] = 0x401000 + id;
	xen[place].contexts[656 / 8] = 0x33;
	xen[place].contexts[5008 / 8] = 3 * 4096;
}

static void begin(const struct vp_guest_sampler_options *options, struct vp_guest_sampler **ret)
{
	asked = done = 0;
	is_ending = false;
	now = 1000;
	read_ns = 0;
	expect_no_error(vp_guest_sampler_xen()->open(options, ret));
	asked = 1;
	expect_no_error(vp_guest_sampler_xen()->begin(*ret));
	pthread_mutex_lock(&lock);
	while (done != 1)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void wake_to_end(void)
{
	pthread_mutex_lock(&lock);
	is_ending = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void end(struct vp_guest_sampler *sampler)
{
	wake_to_end();
	expect_no_error(vp_guest_sampler_xen()->end(sampler));
}

enum { TAKEN = 32 };

struct taken {
	size_t count, late;
	struct vp_guest_sample samples[TAKEN];
};

static void take(void *context, union vp_any_record *record)
{
	struct taken *taken = context;

	assert_int_equal(record->header.id, VP_ID_guest_sample);
	if (taken->count < TAKEN)
		taken->samples[taken->count] = record->guest_sample;
	taken->count++;
	taken->late += (record->guest_sample.flags & VP_LATE) != 0;
}

static struct taken drain(struct vp_guest_sampler *sampler)
{
	struct taken taken = {0};

	vp_guest_sampler_xen()->drain(sampler, take, &taken);
	return taken;
}

static void forget_all(void)
{
	memset(xen, 0, sizeof(xen));
	add_domain(0, 0, 0, 0);
	has_frames = false;
}

static const struct vp_guest_sampler_options contexts_only = {.period_ns = PERIOD, .poll_ns = POLL};

/* A sample stands for the CPU time since the previous one; one that stands for several periods is
 * there as often, and all but the last are late. */
static void test_contexts(void **state)
{
	const struct vp_guest_sampler_ops *ops = vp_guest_sampler_xen();
	struct vp_guest_sampler *sampler;

	forget_all();
	add_domain(1, 5, VP_XEN_HVM, 1);
	xen[1].vcpus[0].cpu_time = 70000; /* before: no sample stands for it */
	xen[1].vcpus[1].cpu_time = 90000;
	begin(&contexts_only, &sampler);
	assert_false(vp_xen_sampler_wants_account(sampler));
	assert_false(vp_xen_sampler_wants_exits(sampler));
	assert_int_equal(drain(sampler).count, 0);
	assert_int_equal(ops->totals(sampler).samples, 0);

	read_ns = 7;
	now = 2000;
	xen[1].vcpus[0].cpu_time += 260; /* three periods, by rounding */
	xen[1].vcpus[1].cpu_time += 40;  /* not yet */
	run_round();
	struct taken taken = drain(sampler);
	assert_int_equal(taken.count, 3);
	assert_int_equal(taken.late, 2);
	assert_int_equal(taken.samples[2].flags & VP_LATE, 0);
	assert_int_equal(taken.samples[0].time, 2000);
	assert_int_equal(taken.samples[0].vm, 6);
	assert_int_equal(taken.samples[0].vcpu, 0);
	assert_int_equal(taken.samples[0].ip, 0x401005);
	assert_int_equal(taken.samples[0].as_root, 3 * 4096);
	assert_int_equal(taken.samples[0].mode, VP_MODE_GUEST_USER);
	assert_int_equal(ops->totals(sampler).samples, 1);
	assert_int_equal(ops->totals(sampler).late, 2);
	assert_int_equal(ops->totals(sampler).pause, 7);
	assert_int_equal(ops->totals(sampler).max_ns, 7);

	/* One that does not run is not looked at; its time counts when it runs again. */
	read_ns = 3;
	xen[1].vcpus[1].cpu_time += 160; /* 200 */
	xen[1].vcpus[1].blocked = 1;
	run_round();
	assert_int_equal(drain(sampler).count, 0);
	xen[1].vcpus[1].blocked = 0;
	xen[1].vcpus[1].online = 0;
	run_round();
	assert_int_equal(drain(sampler).count, 0);
	xen[1].vcpus[1].online = 1;
	run_round();
	taken = drain(sampler);
	assert_int_equal(taken.count, 2);
	assert_int_equal(taken.samples[1].vcpu, 1);
	assert_int_equal(ops->totals(sampler).pause, 10);
	assert_int_equal(ops->totals(sampler).max_ns, 7);
	assert_int_equal(ops->totals(sampler).unsampled_ns, 0);

	/* Xen does not say where it is: what it ran has no sample. */
	xen[1].has_no_context = true;
	xen[1].vcpus[1].cpu_time += 210;
	run_round();
	assert_int_equal(drain(sampler).count, 0);
	assert_int_equal(ops->totals(sampler).unsampled_ns, 200);
	assert_int_equal(ops->totals(sampler).pause, 10);
	xen[1].has_no_context = false;

	/* The rest at the end: vCPU 1 has 10 ns of a period left, vCPU 0 was rounded up. */
	end(sampler);
	assert_int_equal(ops->totals(sampler).unsampled_ns, 210);
	assert_null(ops->totals(sampler).problem);
	ops->free(sampler);
	assert_int_equal(n_open, 0);
}

/* Domains that come and go while guests are sampled. */
static void test_domains(void **state)
{
	const struct vp_guest_sampler_ops *ops = vp_guest_sampler_xen();
	struct vp_guest_sampler *sampler;

	forget_all();
	begin(&contexts_only, &sampler);
	add_domain(1, 5, VP_XEN_HVM, 0);
	xen[1].vcpus[0].cpu_time = 5000;
	now += LIST - 1; /* domains are listed ten times a second */
	run_round();
	assert_int_equal(ops->totals(sampler).unsampled_ns, 0);
	now += 1;
	run_round(); /* what it ran before it was seen */
	assert_int_equal(ops->totals(sampler).unsampled_ns, 5000);
	xen[1].vcpus[0].cpu_time += 130;
	run_round();
	assert_int_equal(drain(sampler).count, 1);

	/* A vCPU more. */
	xen[1].domain.last_vcpu = 1;
	xen[1].vcpus[1].online = 1;
	now += LIST;
	run_round();
	xen[1].vcpus[1].cpu_time += 100;
	run_round();
	struct taken taken = drain(sampler);
	assert_int_equal(taken.count, 1);
	assert_int_equal(taken.samples[0].vcpu, 1);

	/* Gone: until it is listed no more, Xen has no answer. 30 ns are left over. */
	xen[1].there = false;
	run_round();
	assert_int_equal(ops->totals(sampler).unsampled_ns, 5000);
	now += LIST;
	run_round();
	assert_int_equal(ops->totals(sampler).unsampled_ns, 5030);
	now += LIST;
	run_round();
	assert_int_equal(ops->totals(sampler).unsampled_ns, 5030);
	assert_int_equal(drain(sampler).count, 0);
	end(sampler);
	ops->free(sampler);
}

/* The address space of a PV guest is a frame of the machine; Xen has a table of whose it is. */
static void test_frames(void **state)
{
	const struct vp_guest_sampler_ops *ops = vp_guest_sampler_xen();
	struct vp_guest_sampler *sampler;

	for (int has = 0; has < 2; has++) {
		forget_all();
		has_frames = has;
		table[3] = 0x777;
		add_domain(2, 7, 0, 0);
		begin(&contexts_only, &sampler);
		xen[2].vcpus[0].cpu_time += PERIOD;
		run_round();
		struct taken taken = drain(sampler);
		assert_int_equal(taken.count, 1);
		assert_int_equal(taken.samples[0].as_root, has ? 0x777000 : 0);
		assert_int_equal((taken.samples[0].flags & VP_HAS_AS_ROOT) != 0, has);
		if (has)
			assert_null(ops->totals(sampler).problem);
		else
			assert_non_null(strstr(ops->totals(sampler).problem, "how much memory"));
		end(sampler);
		ops->free(sampler);
	}
}

/* No more than so many records wait to be taken: the rest is lost, and said to be. */
static void test_full(void **state)
{
	const struct vp_guest_sampler_ops *ops = vp_guest_sampler_xen();
	const uint64_t most = 1 << 18;
	struct vp_guest_sampler *sampler;

	forget_all();
	add_domain(1, 5, VP_XEN_HVM, 0);
	begin(&contexts_only, &sampler);
	xen[1].vcpus[0].cpu_time += (most + 5) * PERIOD;
	run_round();
	assert_int_equal(ops->totals(sampler).lost, 5);
	assert_int_equal(drain(sampler).count, most);
	xen[1].vcpus[0].cpu_time += PERIOD;
	run_round();
	assert_int_equal(drain(sampler).count, 1);
	assert_int_equal(ops->totals(sampler).lost, 5);
	end(sampler);
	ops->free(sampler);
}

/* What a vCPU ran up to a time, by the account. */
static uint64_t ran_ns;

static bool has_run(void *context, uint32_t domain, uint32_t vcpu, uint64_t time,
		    struct vp_xen_ran *ret)
{
	if (domain != 5 || vcpu != 0)
		return false;
	*ret = (struct vp_xen_ran){.ns = ran_ns};
	return true;
}

static const struct vp_xen_runner runner = {.ran = has_run};

/* With exits for interrupts, contexts wait for the account, and only tell whose the exits are. */
static void test_exits(void **state)
{
	const uint64_t second = 1000000000, from = 10 * second;
	const struct vp_guest_sampler_ops *ops = vp_guest_sampler_xen();
	const struct vp_guest_sampler_options options = {
	    .period_ns = PERIOD, .poll_ns = POLL, .interrupts = VP_INTERRUPTS_EXITS};
	struct vp_xen_exit exit = {.domain = 5, .time = from + 500, .ran = 100, .ip = 0x402000};
	struct vp_guest_sampler *sampler;

	forget_all();
	add_domain(1, 5, VP_XEN_HVM, 0);
	begin(&options, &sampler);
	assert_true(vp_xen_sampler_wants_account(sampler));
	assert_true(vp_xen_sampler_wants_exits(sampler));
	assert_int_equal(vp_xen_sampler_weigh(sampler, from, runner), UINT64_MAX);

	/* Two contexts, an exit between them and one after them. */
	now = from + 400;
	xen[1].vcpus[0].cpu_time += POLL;
	run_round();
	now = from + 600;
	xen[1].vcpus[0].cpu_time += POLL;
	run_round();
	assert_int_equal(drain(sampler).count, 0);
	ran_ns = 30;
	assert_int_equal(vp_xen_sampler_weigh(sampler, from + 399, runner), from + 400);
	assert_int_equal(vp_xen_sampler_weigh(sampler, from + 400, runner), from + 600);
	vp_xen_sampler_exit(sampler, &exit);
	ran_ns = 200;
	assert_int_equal(vp_xen_sampler_weigh(sampler, from + 600, runner), UINT64_MAX);
	exit =
	    (struct vp_xen_exit){.domain = 5, .time = from + 700, .ran = 320, .ip = UINT64_MAX - 9};
	vp_xen_sampler_exit(sampler, &exit);

	/* Nothing is complete before the account is; nor after an exit whose process is open. */
	assert_int_equal(drain(sampler).count, 0);
	ran_ns = 340;
	vp_xen_sampler_known(sampler, from + 650, runner);
	struct taken taken = drain(sampler);
	assert_int_equal(taken.count, 2);
	assert_int_equal(taken.samples[0].time, from + 500);
	assert_int_equal(taken.samples[0].ip, 0x402000);
	assert_true(taken.samples[0].flags & VP_AT_INTERRUPT);
	assert_int_equal(taken.samples[0].as_root, 3 * 4096);
	assert_int_equal(taken.samples[1].time, from + 600);
	assert_false(taken.samples[1].flags & VP_AT_INTERRUPT);
	vp_xen_sampler_known(sampler, from + 800, runner);
	assert_int_equal(drain(sampler).count, 0);
	struct vp_guest_sampler_totals totals = ops->totals(sampler);
	assert_int_equal(totals.exits, 1);
	assert_int_equal(totals.exit_periods, 1);
	assert_int_equal(totals.unknown_periods, 0);

	/* A second later no context is awaited any more, at the end no rest: 40 ns. */
	vp_xen_sampler_known(sampler, from + 700 + second, runner);
	assert_int_equal(drain(sampler).count, 0);
	vp_xen_sampler_known(sampler, from + 701 + second, runner);
	taken = drain(sampler);
	assert_int_equal(taken.count, 1);
	assert_int_equal(taken.samples[0].mode, VP_MODE_GUEST_KERNEL);
	assert_int_equal(taken.samples[0].as_root, 0);
	assert_int_equal(taken.samples[0].vm, 6);
	totals = ops->totals(sampler);
	assert_int_equal(totals.exits, 2);
	assert_int_equal(totals.unknown_periods, 1);
	assert_int_equal(totals.unsampled_ns, 0);
	end(sampler);
	vp_xen_sampler_known(sampler, UINT64_MAX, runner);
	assert_int_equal(ops->totals(sampler).unsampled_ns, 40);
	vp_xen_sampler_known(sampler, UINT64_MAX, runner);
	assert_int_equal(ops->totals(sampler).unsampled_ns, 40);
	ops->free(sampler);
}

/* A record waits for an earlier exit of another vCPU whose process is open. */
static void test_order(void **state)
{
	const uint64_t second = 1000000000, from = 10 * second;
	const struct vp_guest_sampler_options options = {
	    .period_ns = PERIOD, .poll_ns = POLL, .interrupts = VP_INTERRUPTS_EXITS};
	const struct vp_xen_exit exit = {
	    .domain = 5, .vcpu = 1, .time = from + 450, .ran = 100, .ip = 0x402000};
	struct vp_guest_sampler *sampler;

	forget_all();
	add_domain(1, 5, VP_XEN_HVM, 1);
	begin(&options, &sampler);
	vp_xen_sampler_weigh(sampler, from, runner);
	vp_xen_sampler_exit(sampler, &exit);
	now = from + 500;
	xen[1].vcpus[0].cpu_time += POLL;
	run_round();
	ran_ns = 100;
	assert_int_equal(vp_xen_sampler_weigh(sampler, from + 500, runner), UINT64_MAX);
	vp_xen_sampler_known(sampler, from + 600, runner);
	assert_int_equal(drain(sampler).count, 0);
	vp_xen_sampler_known(sampler, from + 451 + second, runner);
	const struct taken taken = drain(sampler);
	assert_int_equal(taken.count, 2);
	assert_int_equal(taken.samples[0].time, from + 450);
	assert_int_equal(taken.samples[1].time, from + 500);
	end(sampler);
	vp_guest_sampler_xen()->free(sampler);
}

/* A counter's interrupts are in a guest, or in Xen, right after a guest's exit on that pCPU. */
static void test_counter(void **state)
{
	const struct vp_guest_sampler_ops *ops = vp_guest_sampler_xen();
	const struct vp_guest_sampler_options options = {
	    .period_ns = PERIOD, .poll_ns = POLL, .interrupts = VP_INTERRUPTS_COUNTERS};
	const uint64_t late = 2000000; /* after that an exit is another one's */
	const struct vp_xen_pmu_sample samples[] = {
	    {.time = 3000, .ip = UINT64_MAX, .domain = VP_XEN_DOMID_XEN, .pcpu = 1},
	    {.time = 2000, .ip = 0x403000, .domain = 5},
	    {.time = 3010, .ip = UINT64_MAX, .domain = VP_XEN_DOMID_XEN, .pcpu = 0},
	    {.time = 3020, .ip = UINT64_MAX, .domain = VP_XEN_DOMID_XEN, .pcpu = 0},
	    {.time = 3100, .ip = UINT64_MAX, .domain = VP_XEN_DOMID_XEN, .pcpu = 1},
	    {.time = 4000 + late, .ip = UINT64_MAX, .domain = VP_XEN_DOMID_XEN, .pcpu = 1},
	    {.time = 4001 + late, .ip = UINT64_MAX, .domain = VP_XEN_DOMID_XEN, .pcpu = 1},
	    {.time = 4002 + late, .ip = UINT64_MAX, .domain = VP_XEN_DOMID_XEN, .pcpu = 9}};
	struct vp_guest_sampler *sampler;

	forget_all();
	add_domain(1, 5, VP_XEN_HVM, 0);
	pmu_begun = pmu_ended = 0;
	pmu_totals = (struct vp_xen_pmu_totals){{3, 11, 7}, 2, 4};
	begin(&options, &sampler);
	assert_int_equal(frequency, 1000000000 / PERIOD);
	assert_int_equal(pmu_begun, 1);
	counted = samples;
	n_counted = sizeof(samples) / sizeof(samples[0]);
	ran_ns = 100;
	assert_int_equal(vp_xen_sampler_weigh(sampler, 2000, runner), 3000);
	vp_xen_sampler_exit(sampler, &(struct vp_xen_exit){5, 0, 1, 2900, 150, 0x404000});
	vp_xen_sampler_exit(sampler, &(struct vp_xen_exit){5, 0, 1, 2990, 200, 0x405000});
	vp_xen_sampler_exit(sampler, &(struct vp_xen_exit){5, 0, 0, 2995, 300, 0x406000});
	assert_int_equal(vp_xen_sampler_weigh(sampler, 3050, runner), 3100);
	vp_xen_sampler_exit(sampler, &(struct vp_xen_exit){5, 0, 1, 3080, 400, 0x407000});
	assert_int_equal(vp_xen_sampler_weigh(sampler, 3100, runner), 4000 + late);
	vp_xen_sampler_exit(sampler, &(struct vp_xen_exit){5, 0, 1, 4000, 500, 0x408000});
	assert_int_equal(vp_xen_sampler_weigh(sampler, UINT64_MAX, runner), UINT64_MAX);
	wake_to_end();
	expect_error(ops->end(sampler), "not restored");
	vp_xen_sampler_known(sampler, UINT64_MAX, runner);

	const struct taken taken = drain(sampler);
	const uint64_t times[] = {2000, 3000, 3010, 3100, 4000 + late};
	const uint64_t places[] = {0x403000, 0x405000, 0x406000, 0x407000, 0x408000};
	assert_int_equal(taken.count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(taken.samples[i].time, times[i]);
		assert_int_equal(taken.samples[i].ip, places[i]);
		assert_true(taken.samples[i].flags & VP_AT_INTERRUPT);
	}
	/* Four of seven in Xen were a guest's, each exit of one. The one at 2900 is too old for the
	 * last.
	 */
	const struct vp_guest_sampler_totals totals = ops->totals(sampler);
	assert_int_equal(totals.own, 11);
	assert_int_equal(totals.hypervisor, 3);
	assert_int_equal(totals.lost, 2);
	assert_int_equal(totals.pcpus, 4);
	assert_int_equal(totals.unknown_periods, 5);
	ops->free(sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_contexts), cmocka_unit_test(test_domains),
	    cmocka_unit_test(test_frames),   cmocka_unit_test(test_full),
	    cmocka_unit_test(test_exits),    cmocka_unit_test(test_counter),
	    cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
