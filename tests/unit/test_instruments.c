/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instruments of guests' samples, of the hypervisor's events and of guests' own events, with a
 * hypervisor and agents of the test's. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "collect/programs/guest_sampler.h"
#include "collect/programs/hypervisor_events.h"
#include "session/guest_events.h"
#include "session/instrument.h"
#include "session/instrument_account.h"
#include "session/instrument_guest_samples.h"
#include "session/instrument_guest_trace.h"
#include "session/instrument_hypervisor.h"
#include "session/instrument_intervals.h"
#include "session/session_private.h"
#include "session_vms.h"
#include "store/trace_reader.h"
#include "xen/xen_counters.h"

#define NAME "test_instruments.dir"

/* What was called, word for word. */
static struct vp_buffer called;

#define CALLED(...) vp_buffer_printf(&called, __VA_ARGS__)

static void expect_called(const char *expected)
{
	assert_string_equal(vp_buffer_text(&called), expected);
	called.size = 0;
}

/* --- the hypervisor --- */

static bool is_gone(const struct vp_vm *vm)
{
	return false;
}

struct vp_guest_sampler {
	struct vp_guest_sampler_options options;
};
static struct vp_guest_sampler sampler;
static struct vp_services services; /* of the session */
static struct vp_guest_sampler_totals totals;
static VP_VEC(union vp_any_record) gathered;

static struct vp_error *sampler_open(const struct vp_guest_sampler_options *options,
				     struct vp_guest_sampler **ret)
{
	sampler.options = *options;
	*ret = &sampler;
	return NULL;
}

static struct vp_error *sampler_begin(struct vp_guest_sampler *own)
{
	CALLED("begin ");
	return NULL;
}

static struct vp_error *sampler_end(struct vp_guest_sampler *own)
{
	CALLED("end ");
	return vp_error_new("not as before");
}

static void sampler_drain(struct vp_guest_sampler *own,
			  void (*take)(void *context, union vp_any_record *record), void *context)
{
	vp_vec_each (&gathered, record)
		take(context, record);
	gathered.count = 0;
}

static struct vp_guest_sampler_totals sampler_totals(struct vp_guest_sampler *own)
{
	return totals;
}

static void sampler_free(struct vp_guest_sampler *own)
{
	CALLED("free ");
}

static const struct vp_guest_sampler_ops *sampler_ops(void)
{
	static const struct vp_guest_sampler_ops ops = {.method = VP_GUEST_SAMPLING_CONTEXTS,
							.open = sampler_open,
							.begin = sampler_begin,
							.end = sampler_end,
							.drain = sampler_drain,
							.totals = sampler_totals,
							.free = sampler_free};

	return &ops;
}

static struct vp_buffer events_taken;
static uint64_t events_missed;

static struct vp_error *events_define(struct vp_hypervisor_events *events,
				      vp_event_classes *classes)
{
	const struct vp_event_field field = {.name = "pcpu", .shape = VP_EVENT_INTEGER, .size = 4};
	struct vp_event_class *class;

	VP_TRY(vp_event_classes_add(classes, "xen:wake", &class));
	return vp_event_class_add_field(class, &field);
}

static struct vp_buffer *events_take(struct vp_hypervisor_events *events)
{
	return &events_taken;
}

static uint64_t events_lost(const struct vp_hypervisor_events *events)
{
	return events_missed;
}

static void events_free(struct vp_hypervisor_events *events)
{
	CALLED("free ");
}

static const struct vp_hypervisor_events_ops *events_ops(void)
{
	static const struct vp_hypervisor_events_ops ops = {
	    .define = events_define, .take = events_take, .lost = events_lost, .free = events_free};

	return &ops;
}

static const struct vp_account_ops *account_ops(void)
{
	static const struct vp_account_ops ops = {.often = false};

	return &ops;
}

static const struct vp_hypervisor hypervisor = {.is_gone = is_gone,
						.has_processes = true,
						.guest_sampler = sampler_ops,
						.events = events_ops,
						.account = account_ops};

/* Counters of Xen's guests: how many are open. */
static int open_counters;

struct vp_error *__wrap_vp_xen_counters_open(struct vp_xen_counters **ret);
void __wrap_vp_xen_counters_close(struct vp_xen_counters *counters);

struct vp_error *__wrap_vp_xen_counters_open(struct vp_xen_counters **ret)
{
	*ret = (void *)&open_counters;
	open_counters++;
	return NULL;
}

void __wrap_vp_xen_counters_close(struct vp_xen_counters *counters)
{
	open_counters -= counters != NULL;
}

const struct vp_hypervisor *__wrap_vp_hypervisor_here(void);
enum vp_vendor __wrap_vp_host_vendor(void);
void __wrap_vp_vm_read_tsc(struct vp_vm *vm);
char *__wrap_vp_host_other_clock(const char *sysfs);

const struct vp_hypervisor *__wrap_vp_hypervisor_here(void)
{
	return &hypervisor;
}

enum vp_vendor __wrap_vp_host_vendor(void)
{
	return VP_VENDOR_AMD;
}

void __wrap_vp_vm_read_tsc(struct vp_vm *vm)
{
	CALLED("read-tsc:%s ", vm->name);
}

static const char *other_clock; /* of the kernel, or NULL */

char *__wrap_vp_host_other_clock(const char *sysfs)
{
	assert_string_equal(sysfs, "/sys");
	return other_clock ? vp_strdup(other_clock) : NULL;
}

/* --- the session --- */

static const char *const chosen[] = {"vm1"};

/* Of two VMs the second is chosen. */
static void session_begin(struct vp_session *session)
{
	assert_int_equal(system("rm -rf " NAME " && mkdir " NAME), 0);
	*session = (struct vp_session){
	    .hypervisor = &hypervisor,
	    .dir.now = (char *)NAME,
	    .info.start = 1000000000,
	    .options = {
		.vm_names = chosen, .n_vm_names = 1, .compression = 3, .agent_bytes = 12345}};
	session_add_vm(session, "vm0", 1000);
	session_add_vm(session, "vm1", 2000);
	expect_no_error(vp_trace_writer_create_host(NAME, "host", &session->trace));
}

static void session_end(struct vp_session *session, struct vp_instrument *instrument)
{
	instrument->ops->free(instrument);
	vp_trace_writer_free(session->trace);
	vp_event_classes_deinit(&session->event_classes);
	vp_vms_deinit(&session->vms);
	vp_sample_counts_deinit(&session->samples);
	vp_notices_deinit(&session->notices);
	vp_buffer_deinit(&called);
}

static void expect_total(const struct vp_instrument *instrument, const char *expected)
{
	struct vp_buffer text = {0};

	instrument->ops->put_total(instrument, &text);
	assert_string_equal(vp_buffer_text(&text), expected);
	vp_buffer_deinit(&text);
}

/* --- samples of guests --- */

static void gather_sample(uint32_t vm, uint32_t tid)
{
	union vp_any_record record = {
	    .guest_sample = {.time = 2000000000,
			     .id = VP_ID_guest_sample,
			     .flags = VP_HAS_AS_ROOT | VP_BY_MEMORY | VP_HAS_EXIT_REASON,
			     .vm = vm,
			     .tid = tid,
			     .vcpu = 1,
			     .ip = 0x1234,
			     .as_root = 0x5000,
			     .guest_pid = 7,
			     .guest_tid = 8,
			     .exit_reason = 9}};

	vp_vec_push(&gathered, record);
}

static void gather_task(uint32_t vm)
{
	union vp_any_record record = {.guest_task = {.time = 1900000000,
						     .id = VP_ID_guest_task,
						     .flags = VP_IN_USER,
						     .vm = vm,
						     .guest_pid = 7,
						     .guest_tid = 8,
						     .comm = "worker"}};

	vp_vec_push(&gathered, record);
}

static struct vp_instrument *samples_of(struct vp_session *session,
					enum vp_guest_interrupts interrupts)
{
	const struct vp_instrument_guest_samples_options options = {
	    .period_ns = 2000000, .poll_ns = 500000, .interrupts = interrupts};
	struct vp_instrument *instrument = vp_instrument_guest_samples(&options);

	instrument->session = session;
	expect_no_error(instrument->ops->open(instrument, &services));
	return instrument;
}

/* A guest that was not chosen runs; what it does is not told. */
static void test_guest_samples(void **state)
{
	struct vp_session session;
	vp_stream_readers streams = {0};
	const struct vp_record_header *record;
	unsigned samples = 0, tasks = 0;

	session_begin(&session);
	struct vp_instrument *instrument = samples_of(&session, VP_INTERRUPTS_NONE);
	assert_true(sampler.options.period_ns == 2000000 && sampler.options.poll_ns == 500000);
	assert_ptr_equal(services.guest_sampler, &sampler);
	struct vp_recording info = {.instruments = (char *)"guest-samples account"};
	instrument->ops->describe(instrument, &info);
	assert_int_equal(info.period_ns, 2000000);
	info = (struct vp_recording){.instruments = (char *)"profile guest-samples"};
	instrument->ops->describe(instrument, &info);
	assert_int_equal(info.period_ns, 0);
	expect_no_error(instrument->ops->start(instrument, 0));
	gather_task(1000);
	gather_sample(1000, 1002);
	gather_task(2000);
	gather_sample(2000, 2002);
	expect_no_error(instrument->ops->drain(instrument));
	expect_total(instrument, "2 samples of guests, ");
	totals = (struct vp_guest_sampler_totals){.lost = 6};
	const struct vp_stream_id id = {VP_STREAM_GUESTS, VP_NO_PCPU};
	assert_int_equal(instrument->ops->lost(instrument, id), 6);
	expect_error(instrument->ops->stop(instrument), "not as before");
	expect_called("begin end ");
	assert_int_equal(vp_vm_vcpu(&session.vms.at[0], 1)->tid, 1002);
	assert_int_equal(vp_vm_vcpu(&session.vms.at[1], 1)->tid, 2002);
	vp_trace_flush(session.trace, id, 6);

	expect_no_error(vp_trace_open(NAME "/host", VP_STREAMS(VP_STREAM_GUESTS), &streams));
	assert_int_equal(streams.count, 1);
	while ((record = vp_stream_next(streams.at[0]))) {
		const struct vp_guest_sample *sample = (const void *)record;
		const struct vp_guest_task *task = (const void *)record;
		bool hidden = record->id == VP_ID_guest_sample && sample->vm == 1000;
		tasks += record->id == VP_ID_guest_task;
		if (record->id == VP_ID_guest_task) {
			assert_int_equal(task->vm, 2000);
			continue;
		}
		samples++;
		assert_int_equal(sample->tid, hidden ? 1002 : 2002);
		assert_int_equal(sample->ip, hidden ? 0 : 0x1234);
		assert_int_equal(sample->as_root, hidden ? 0 : 0x5000);
		assert_int_equal(sample->guest_pid, hidden ? 0 : 7);
		assert_int_equal(sample->guest_tid, hidden ? 0 : 8);
		assert_int_equal(sample->exit_reason, 9);
		assert_int_equal(sample->flags,
				 hidden ? VP_HAS_EXIT_REASON | VP_HIDDEN
					: VP_HAS_AS_ROOT | VP_BY_MEMORY | VP_HAS_EXIT_REASON);
	}
	assert_true(samples == 2 && tasks == 1);
	vp_trace_close(&streams);
	session_end(&session, instrument);
}

/* The recording has the numbers of the samples, and of their cost. */
static void test_cost_of_samples(void **state)
{
	totals = (struct vp_guest_sampler_totals){.samples = 90,
						  .pause = 360000,
						  .max_ns = 17000,
						  .unsampled_ns = 3000000,
						  .exits = 5,
						  .exit_periods = 1,
						  .unknown_periods = 2,
						  .own = 11,
						  .hypervisor = 12,
						  .pcpus = 3};
	for (unsigned i = 0; i < 3; i++) {
		struct vp_session session;
		session_begin(&session);
		struct vp_instrument *instrument = samples_of(&session, i);
		for (int n = 0; n < 4; n++)
			gather_sample(2000, 2002);
		if (i == 2)
			totals.problem = "no access";
		session.info.start = 1000000000;
		expect_no_error(instrument->ops->finish(instrument, 3000000000));
		expect_total(instrument, "4 samples of guests, ");
		const struct vp_guest_sampling *guests = &session.info.guests;
		assert_true(guests->method == VP_GUEST_SAMPLING_CONTEXTS && guests->exits == i);
		assert_int_equal(guests->period_ns, 2000000);
		assert_int_equal(guests->duration_ns, 2000000000);
		assert_int_equal(guests->contexts, 90);
		assert_int_equal(guests->pause_ns, 360000);
		assert_int_equal(guests->max_pause_ns, 17000);
		assert_int_equal(guests->unsampled_ns, 3000000);
		assert_int_equal(guests->periods, 4);
		assert_int_equal(guests->exit_samples, 5);
		assert_int_equal(guests->exit_periods, 1);
		assert_int_equal(guests->unknown_periods, 2);
		assert_int_equal(guests->pcpus, 3);
		assert_int_equal(guests->own, 11);
		assert_int_equal(guests->hypervisor, 12);
		assert_int_equal(session.notices.count, i == 2);
		session_end(&session, instrument);
	}
	vp_vec_deinit(&gathered);
}

/* --- the order of instruments --- */

/* Each that fills a member of struct vp_services provides it, and those that read it use it. */
static void test_services(void **state)
{
	const struct vp_instrument_guest_samples_options of_samples = {.period_ns = 1};
	const struct vp_instrument_intervals_options of_intervals = {.recipe = NULL};
	const struct vp_account_source_options of_account = {.with_states = false};
	struct vp_instrument *samples = vp_instrument_guest_samples(&of_samples);
	struct vp_instrument *account = vp_instrument_account(&of_account);
	struct vp_instrument *intervals = vp_instrument_intervals(&of_intervals);

	assert_int_equal(samples->ops->provides, VP_SERVICE_GUEST_SAMPLER);
	assert_int_equal(samples->ops->uses, 0);
	assert_int_equal(account->ops->uses, VP_SERVICE_GUEST_SAMPLER);
	assert_int_equal(account->ops->provides, VP_SERVICE_EXIT_PROGRAMS);
	assert_int_equal(intervals->ops->uses, VP_SERVICE_EXIT_PROGRAMS);
	assert_int_equal(intervals->ops->provides, 0);
	samples->ops->free(samples);
	intervals->ops->free(intervals);
	account->ops->free(account);
}

/* --- the hypervisor's events --- */

static void test_hypervisor_events(void **state)
{
	const struct vp_stream_id id = {VP_STREAM_HYPERVISOR, VP_NO_PCPU};
	struct vp_session session;
	vp_stream_readers streams = {0};
	const struct vp_record_header *record;
	uint64_t times[4];
	size_t count = 0;

	session_begin(&session);
	struct vp_instrument *instrument = vp_instrument_hypervisor(NULL);
	instrument->session = &session;
	expect_no_error(instrument->ops->open(instrument, &services));
	expect_no_error(instrument->ops->prepare(instrument));
	assert_int_equal(session.event_classes.count, 1);
	expect_no_error(vp_trace_writer_define(session.trace, &session.event_classes));
	const struct vp_event_class *class = &session.event_classes.at[0];
	static const uint64_t given[] = {500, 700, 600, 900}; /* one is late */
	for (size_t i = 0; i < 4; i++) {
		size_t begin = events_taken.size;
		vp_event_begin(&events_taken, class, given[i]);
		vp_event_put_integer(&events_taken, &class->fields.at[0], i);
		expect_no_error(vp_event_end(&events_taken, begin));
	}
	expect_no_error(instrument->ops->drain(instrument));
	events_taken.size = 0;
	expect_no_error(instrument->ops->drain(instrument));
	expect_total(instrument, "4 events of the hypervisor, ");
	instrument->ops->conclude(instrument);
	assert_int_equal(session.notices.count, 0);
	events_missed = 9;
	assert_int_equal(instrument->ops->lost(instrument, id), 9);
	instrument->ops->conclude(instrument);
	assert_non_null(strstr(session.notices.at[0], "9 hypervisor events were lost"));
	vp_trace_flush(session.trace, id, 9);
	expect_no_error(vp_trace_open(NAME "/host", VP_STREAMS(VP_STREAM_HYPERVISOR), &streams));
	while ((record = vp_stream_next(streams.at[0])))
		times[count++] = record->time;
	assert_true(count == 4 && times[0] == 500 && times[1] == 700 && times[2] == 700 &&
		    times[3] == 900);
	vp_trace_close(&streams);
	vp_buffer_deinit(&events_taken);
	session_end(&session, instrument);
}

/* --- guests' own events --- */

struct vp_guest_events {
	uint32_t vm;
	char *name;
	int asks;    /* it is asking, that many looks long */
	int sends;   /* looks until it is no longer open */
	int flushes; /* looks until it has flushed */
	bool ready;  /* it would answer if it were asked again */
	uint64_t count, lost;
};
static VP_VEC(struct vp_guest_events *) agents;
static int pipes[2];

struct vp_guest_events *__wrap_vp_guest_events_new(const struct vp_guest_events_options *options,
						   const struct vp_vm *vm, const char *part);
void __wrap_vp_guest_events_free(struct vp_guest_events *own);
bool __wrap_vp_guest_events_again(struct vp_guest_events *own, const struct vp_vm *vm,
				  uint64_t now);
void __wrap_vp_guest_events_give_up(struct vp_guest_events *own);
uint32_t __wrap_vp_guest_events_vm(const struct vp_guest_events *own);
int __wrap_vp_guest_events_fd(const struct vp_guest_events *own);
void __wrap_vp_guest_events_update_vcpu(struct vp_guest_events *own, const struct vp_vm *vm);
bool __wrap_vp_guest_events_receive(struct vp_guest_events *own, int timeout_ms);
bool __wrap_vp_guest_events_is_asking(const struct vp_guest_events *own);
bool __wrap_vp_guest_events_is_open(const struct vp_guest_events *own);
void __wrap_vp_guest_events_begin(struct vp_guest_events *own, uint64_t now);
void __wrap_vp_guest_events_stop(struct vp_guest_events *own, uint64_t now);
void __wrap_vp_guest_events_flush(struct vp_guest_events *own);
void __wrap_vp_guest_events_request_flush(struct vp_guest_events *own);
bool __wrap_vp_guest_events_flush_pending(const struct vp_guest_events *own);
struct vp_error *__wrap_vp_guest_events_snapshot(struct vp_guest_events *own, const char *path,
						 uint64_t from);
void __wrap_vp_guest_events_forget(struct vp_guest_events *own, uint64_t reach);
uint64_t __wrap_vp_guest_events_count(const struct vp_guest_events *own);
uint64_t __wrap_vp_guest_events_lost(const struct vp_guest_events *own);
struct vp_agent_outcome __wrap_vp_guest_events_outcome(const struct vp_guest_events *own);

struct vp_guest_events *__wrap_vp_guest_events_new(const struct vp_guest_events_options *options,
						   const struct vp_vm *vm, const char *part)
{
	struct vp_guest_events *own = vp_alloc(sizeof(*own));

	assert_string_equal(options->directory, NAME);
	assert_true(options->sets == 5 && options->port == 77 && options->compression == 3);
	assert_true(options->max_bytes == 12345 && options->clock && options->notices);
	CALLED("new:%s:%s ", vm->name, part);
	*own = (struct vp_guest_events){.vm = vp_vm_id(vm), .name = vp_strdup(vm->name)};
	vp_vec_push(&agents, own);
	return own;
}

void __wrap_vp_guest_events_free(struct vp_guest_events *own)
{
	CALLED("free:%s ", own->name);
	free(own->name);
	free(own);
}

bool __wrap_vp_guest_events_again(struct vp_guest_events *own, const struct vp_vm *vm, uint64_t now)
{
	assert_int_equal(own->vm, vp_vm_id(vm));
	CALLED("again:%s:%llu ", own->name, (unsigned long long)now);
	return own->ready;
}

void __wrap_vp_guest_events_give_up(struct vp_guest_events *own)
{
	CALLED("give-up:%s ", own->name);
}

uint32_t __wrap_vp_guest_events_vm(const struct vp_guest_events *own)
{
	return own->vm;
}

int __wrap_vp_guest_events_fd(const struct vp_guest_events *own)
{
	return pipes[0];
}

void __wrap_vp_guest_events_update_vcpu(struct vp_guest_events *own, const struct vp_vm *vm)
{
	assert_int_equal(own->vm, vp_vm_id(vm));
	CALLED("know:%s ", own->name);
}

bool __wrap_vp_guest_events_receive(struct vp_guest_events *own, int timeout_ms)
{
	CALLED("hear:%s:%d ", own->name, timeout_ms);
	own->asks -= own->asks > 0;
	own->sends -= own->sends > 0;
	own->flushes -= own->flushes > 0;
	return own->sends;
}

bool __wrap_vp_guest_events_is_asking(const struct vp_guest_events *own)
{
	return own->asks;
}

bool __wrap_vp_guest_events_is_open(const struct vp_guest_events *own)
{
	return own->sends;
}

void __wrap_vp_guest_events_begin(struct vp_guest_events *own, uint64_t now)
{
	CALLED("begin:%s:%llu ", own->name, (unsigned long long)now);
}

void __wrap_vp_guest_events_stop(struct vp_guest_events *own, uint64_t now)
{
	CALLED("stop:%s ", own->name);
}

void __wrap_vp_guest_events_flush(struct vp_guest_events *own)
{
	CALLED("flush:%s ", own->name);
}

void __wrap_vp_guest_events_request_flush(struct vp_guest_events *own)
{
	CALLED("request_flush:%s ", own->name);
	own->flushes = 2;
}

bool __wrap_vp_guest_events_flush_pending(const struct vp_guest_events *own)
{
	return own->flushes;
}

struct vp_error *__wrap_vp_guest_events_snapshot(struct vp_guest_events *own, const char *path,
						 uint64_t from)
{
	CALLED("snapshot:%s:%s:%llu ", own->name, path, (unsigned long long)from);
	return vp_error_new("no room for %s", own->name);
}

void __wrap_vp_guest_events_forget(struct vp_guest_events *own, uint64_t reach)
{
	CALLED("forget:%s ", own->name);
}

uint64_t __wrap_vp_guest_events_count(const struct vp_guest_events *own)
{
	return own->count;
}

uint64_t __wrap_vp_guest_events_lost(const struct vp_guest_events *own)
{
	return own->lost;
}

struct vp_agent_outcome __wrap_vp_guest_events_outcome(const struct vp_guest_events *own)
{
	return (struct vp_agent_outcome){.request = VP_AGENT_EVENTS,
					 .status = VP_AGENT_FAILED,
					 .problem = vp_format("%s sent", own->name)};
}

static struct vp_instrument *trace_of(struct vp_session *session)
{
	const struct vp_instrument_guest_trace_options options = {.sets = 5, .port = 77};
	struct vp_instrument *instrument = vp_instrument_guest_trace(&options);

	session->options.n_vm_names = 0; /* both are chosen */
	instrument->session = session;
	assert_false(pipe(pipes));
	agents.count = 0;
	called.size = 0;
	struct vp_error *error = instrument->ops->open(instrument, &services);
	if (error) /* this machine has no such counter */
		skip();
	return instrument;
}

static void trace_end(struct vp_session *session, struct vp_instrument *instrument)
{
	session_end(session, instrument);
	vp_vec_deinit(&agents);
	close(pipes[0]);
	close(pipes[1]);
}

/* Times of guests' events are converted from the counters; a hypervisor whose own records are, too,
 * has been warned of already. */
static void test_guest_trace_clock(void **state)
{
	struct vp_hypervisor of_xen = hypervisor;
	struct vp_session session;

	of_xen.has_counter_times = true;
	of_xen.has_processes = false;
	other_clock = "hpet";
	for (int xen = 0; xen < 2; xen++) {
		session_begin(&session);
		session.hypervisor = xen ? &of_xen : &hypervisor;
		struct vp_instrument *instrument = trace_of(&session);
		assert_int_equal(session.notices.count, !xen);
		assert_int_equal(open_counters, xen);
		if (!xen)
			assert_non_null(strstr(session.notices.at[0], "clock source is hpet"));
		trace_end(&session, instrument);
	}
	assert_int_equal(open_counters, 0);
	other_clock = NULL;
}

/* From the first question to the last answer. */
static void test_guest_trace(void **state)
{
	struct vp_session session;

	session_begin(&session);
	struct vp_instrument *instrument = trace_of(&session);
	expect_no_error(instrument->ops->prepare(instrument));
	expect_called("read-tsc:vm0 new:vm0:guest-vm0 read-tsc:vm1 new:vm1:guest-vm1 ");
	agents.at[1]->asks = 2; /* another time: it takes two looks until it has answered */
	expect_no_error(instrument->ops->prepare(instrument));
	expect_called("hear:vm1:20 hear:vm1:20 ");
	expect_no_error(instrument->ops->start(instrument, 500));
	expect_called("hear:vm0:0 hear:vm1:0 begin:vm0:500 begin:vm1:500 ");
	expect_no_error(instrument->ops->drain(instrument));
	expect_called("hear:vm0:0 hear:vm1:0 ");
	assert_true(instrument->ops->fd(instrument) >= 0);
	/* A VM more; one has ended; the agent of another has gone. */
	session_add_vm(&session, "vm2", 3000);
	session.vms.at[0].end = 1;
	agents.at[1]->ready = true;
	instrument->ops->second(instrument, 900);
	expect_called("read-tsc:vm2 new:vm2:guest-vm2 begin:vm2:500 "
		      "read-tsc:vm1 know:vm1 read-tsc:vm2 know:vm2 "
		      "give-up:vm0 again:vm1:900 again:vm2:900 flush:vm0 flush:vm1 flush:vm2 ");
	expect_no_error(instrument->ops->stop(instrument));
	expect_called("stop:vm0 stop:vm1 stop:vm2 ");
	/* In turns until none is open; then times are known by the counters of now. */
	agents.at[0]->sends = 1;
	agents.at[2]->sends = 2;
	expect_no_error(instrument->ops->finish(instrument, 1000));
	expect_called("hear:vm0:20 hear:vm2:20 hear:vm2:20 "
		      "read-tsc:vm1 know:vm1 read-tsc:vm2 know:vm2 flush:vm0 flush:vm1 flush:vm2 ");
	assert_int_equal(session.notices.count, 0);
	agents.at[0]->count = 7;
	agents.at[1]->count = 5;
	agents.at[1]->lost = 3;
	instrument->ops->conclude(instrument);
	assert_true(session.vms.at[0].guest_events == 7 && !session.vms.at[0].guest_events_lost);
	assert_true(session.vms.at[1].guest_events == 5 &&
		    session.vms.at[1].guest_events_lost == 3);
	assert_string_equal(session.vms.at[2].agent, "events: vm2 sent");
	assert_int_equal(session.notices.count, 3);
	assert_string_equal(session.notices.at[0], "VM 'vm0': its agent: events: vm0 sent");
	assert_string_equal(session.notices.at[1], "VM 'vm1': its agent: events: vm1 sent");
	assert_non_null(strstr(session.notices.at[2], "VM 'vm1': 3 events of its guest were lost"));
	expect_total(instrument, "12 events of guests, ");
	/* Of one that is forgotten, only the number of its events stays. */
	instrument->ops->forget_vm(instrument, 1000);
	expect_called("free:vm0 ");
	expect_total(instrument, "12 events of guests, ");
	instrument->ops->forget_vm(instrument, 1000);
	expect_called("");
	trace_end(&session, instrument);
}

/* Each guest's events are written to its own part of a snapshot; the first error is told. */
static void test_snapshots(void **state)
{
	struct vp_session session;

	session_begin(&session);
	struct vp_instrument *instrument = trace_of(&session);
	expect_no_error(instrument->ops->prepare(instrument));
	called.size = 0;
	instrument->ops->request_flush(instrument);
	expect_called(
	    "request_flush:vm0 request_flush:vm1 hear:vm0:20 hear:vm1:20 hear:vm0:20 hear:vm1:20 ");
	expect_error(instrument->ops->put_streams(instrument, "snap", 44), "no room for vm0");
	expect_called("snapshot:vm0:snap/guest-vm0:44 snapshot:vm1:snap/guest-vm1:44 ");
	trace_end(&session, instrument);
}

/* Only of VMs that were chosen. */
static void test_chosen_guests(void **state)
{
	struct vp_session session;

	session_begin(&session);
	struct vp_instrument *instrument = trace_of(&session);
	session.options.n_vm_names = 1;
	expect_no_error(instrument->ops->prepare(instrument));
	expect_called("read-tsc:vm1 new:vm1:guest-vm1 ");
	trace_end(&session, instrument);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_guest_samples),     cmocka_unit_test(test_cost_of_samples),
	    cmocka_unit_test(test_services),          cmocka_unit_test(test_hypervisor_events),
	    cmocka_unit_test(test_guest_trace_clock), cmocka_unit_test(test_guest_trace),
	    cmocka_unit_test(test_snapshots),         cmocka_unit_test(test_chosen_guests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
