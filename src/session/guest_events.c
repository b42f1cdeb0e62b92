/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/guest_events.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/vec.h"
#include "collect/agent/agent_client.h"
#include "collect/agent/clock_line.h"
#include "protocol/events_protocol.h"
#include "schema/agent_outcome.h"
#include "schema/event_class.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/flight.h"
#include "store/packet.h"
#include "store/trace_writer.h"
#include "vchan/xen_time.h"

/* Limit of bytes read from one guest before other guests and the host's rings are served. */
enum { MAX_AT_ONCE = 4 << 20 };

/* Limit for events of hot-plugged vCPUs that arrive before their counter is read from KVM, per
 * guest. */
enum { MAX_EARLY_BYTES = 4 << 20, MAX_EARLY_VCPUS = 64 };
struct early {
	uint32_t vcpu;
	uint64_t lost;
	struct vp_buffer records;
};

/* Stream of a vCPU. */
struct stream {
	uint32_t vcpu;
	uint64_t lost;        /* lost in the guest, as reported by its agent … */
	uint64_t lost_before; /* … part of it reported by earlier agents */
};

/* A rebooted kernel may have other events, or other fields: limit of classes per guest. */
enum { MAX_CLASSES = 1024 };
/* Delay of reconnecting to an agent, seconds: initial value, and maximum. */
enum { AGAIN_S = 3, LONGEST_AGAIN_S = 60 };
#define SECOND 1000000000ULL

struct vp_guest_events {
	struct vp_guest_events_options options;
	uint32_t id;
	char *vm, *part;               /* the VM's name, and its part of the recording */
	struct vp_agent_events *agent; /* NULL: not connected */
	enum vp_agent_events_state state;
	char *problem;
	uint64_t next;                  /* time of the next attempt without an agent */
	unsigned failures;              /* consecutive failures since the last records */
	uint64_t gone_at;               /* time since which they are missing; 0: they are not */
	uint64_t missing;               /* earlier missing time, total ns */
	struct vp_trace_writer *writer; /* NULL: no data so far */
	vp_event_classes classes;
	VP_VEC(uint16_t) ids;         /* per class of this agent: id in `classes` */
	VP_VEC(struct vp_vcpu) vcpus; /* those with a known counter */
	struct vp_clock_line line;    /* from event times to the guest's counter, if they differ */
	VP_VEC(struct stream) streams;
	VP_VEC(struct early) early;
	size_t early_bytes;
	VP_VEC(struct vp_events_task) tasks; /* kept until there is a stream */
	uint64_t counter_error_ns;           /* largest correction of a counter */
	uint64_t from, to;                   /* recorded time */
	uint64_t tasks_from;                 /* time from which names are known */
	uint64_t bytes, written, malformed, malformed_before, strange;
	uint64_t refused; /* dropped beyond a limit */
	uint64_t latest;  /* event time */
	bool is_short;    /* a warning was given that its memory is too small for a snapshot */
};

#define NOTICE(events, ...) vp_vec_push((events)->options.notices, vp_format(__VA_ARGS__))

static void have_problem(struct vp_guest_events *events, const char *why)
{
	if (!events->problem)
		NOTICE(events, "VM '%s': guest events are not recorded: %s", events->vm, why);
	free(events->problem);
	events->problem = vp_strdup(why);
}

static bool has_counter(const struct vp_vm *vm)
{
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->has_tsc)
			return true;
	return false;
}

static struct vp_error *guest_events_start(struct vp_guest_events *events, const struct vp_vm *vm)
{
	const struct vp_agent_address address = vp_agent_address_of(vm, events->options.port);

	if (!vp_agent_is_addressed(&address))
		return vp_error_new("the VM has no vsock device");
	if (!events->options.counters && !has_counter(vm))
		return vp_error_new(
		    "KVM does not report the offsets of its vCPUs' time-stamp counters");
	return vp_agent_events_start(&address, events->options.sets, &events->agent);
}

struct vp_guest_events *vp_guest_events_new(const struct vp_guest_events_options *options,
					    const struct vp_vm *vm, const char *part)
{
	struct vp_guest_events *events = vp_alloc(sizeof(*events));

	*events = (struct vp_guest_events){.options = *options,
					   .id = vp_vm_id(vm),
					   .vm = vp_strdup(vm->name),
					   .part = vp_strdup(part),
					   .from = UINT64_MAX,
					   .to = UINT64_MAX};
	vp_guest_events_update_vcpu(events, vm);
	struct vp_error *error = guest_events_start(events, vm);
	if (error)
		have_problem(events, vp_error_message(error));
	vp_error_free(error);
	return events;
}

void vp_guest_events_free(struct vp_guest_events *events)
{
	vp_agent_events_free(events->agent);
	vp_trace_writer_free(events->writer);
	vp_event_classes_deinit(&events->classes);
	vp_vec_deinit(&events->ids);
	vp_vec_deinit(&events->vcpus);
	vp_clock_line_deinit(&events->line);
	vp_vec_deinit(&events->streams);
	vp_vec_each (&events->early, early)
		vp_buffer_deinit(&early->records);
	vp_vec_deinit(&events->early);
	vp_vec_deinit(&events->tasks);
	free(events->problem);
	free(events->vm);
	free(events->part);
	free(events);
}

uint32_t vp_guest_events_vm(const struct vp_guest_events *events)
{
	return events->id;
}

int vp_guest_events_fd(const struct vp_guest_events *events)
{
	return events->agent ? vp_agent_events_fd(events->agent) : -1;
}

static void take_early(struct vp_guest_events *events, uint32_t vcpu);

static struct vp_vcpu *any_vcpu_of(const struct vp_guest_events *events, uint32_t number)
{
	vp_vec_each (&events->vcpus, vcpu)
		if (vcpu->number == number)
			return vcpu;
	return NULL;
}

/* NULL: the vCPU or its counter is unknown. */
static struct vp_vcpu *guest_events_vcpu_of(const struct vp_guest_events *events, uint32_t number)
{
	struct vp_vcpu *vcpu = any_vcpu_of(events, number);

	return vcpu && vcpu->has_tsc ? vcpu : NULL;
}

/* Updates the vCPUs' counters; those of Xen guests come from the agent. */
static void note_vcpus(struct vp_guest_events *events, const struct vp_vm *vm)
{
	vp_vec_each (&vm->vcpus, vcpu)
		if (!any_vcpu_of(events, vcpu->number))
			vp_vec_push(&events->vcpus, (struct vp_vcpu){.number = vcpu->number});
}

void vp_guest_events_update_vcpu(struct vp_guest_events *events, const struct vp_vm *vm)
{
	if (events->options.counters) {
		note_vcpus(events, vm);
		return;
	}
	vp_vec_each (&vm->vcpus, vcpu) {
		struct vp_vcpu *known = guest_events_vcpu_of(events, vcpu->number);
		if (!vcpu->has_tsc)
			continue;
		if (!known) {
			vp_vec_push(&events->vcpus, *vcpu);
			take_early(events, vcpu->number);
			continue;
		}
		if (events->agent && events->writer &&
		    (known->tsc_offset != vcpu->tsc_offset || known->tsc_ratio != vcpu->tsc_ratio))
			NOTICE(events,
			       "VM '%s': the time-stamp counter of vCPU %u was reset: times of its "
			       "guest's events are wrong for up to a second before that",
			       events->vm, vcpu->number);
		*known = *vcpu;
	}
}

static struct stream *guest_events_stream_of(struct vp_guest_events *events, uint32_t vcpu)
{
	vp_vec_each (&events->streams, stream)
		if (stream->vcpu == vcpu)
			return stream;
	vp_vec_push(&events->streams, (struct stream){.vcpu = vcpu});
	return &events->streams.at[events->streams.count - 1];
}

static struct vp_stream_id guest_events_id_of(uint32_t vcpu)
{
	return (struct vp_stream_id){VP_STREAM_TRACEPOINTS, vcpu};
}

/* Adds the agent's classes; after a reboot the guest's kernel may have other ones. */
static struct vp_error *join_classes(struct vp_guest_events *events, struct vp_slice text)
{
	VP_AUTO_FREE char *source = vp_format("the event formats of the agent of '%s'", events->vm);
	vp_event_classes more = {0};

	VP_TRY(vp_event_classes_parse(source, text.bytes, text.size, &more));
	vp_vec_deinit(&events->ids);
	for (size_t i = 0; i < more.count; i++)
		vp_vec_push(&events->ids, 0);
	if (vp_event_classes_join(&events->classes, &more, MAX_CLASSES, events->ids.at))
		return NULL;
	vp_event_classes_deinit(&more);
	return vp_error_new("%s: more than %d kinds of events", source, MAX_CLASSES);
}

static struct vp_error *make_trace(struct vp_guest_events *events)
{
	VP_TRY(vp_trace_writer_create_guest(events->options.directory, events->part, events->vm,
					    &events->writer));
	if (events->options.compression)
		vp_trace_writer_compress(events->writer, (int)events->options.compression);
	if (events->options.flight_bytes)
		VP_TRY(vp_trace_writer_keep(events->writer, events->options.flight_bytes));
	return NULL;
}

static struct vp_error *guest_events_add_classes(struct vp_guest_events *events,
						 struct vp_slice text)
{
	size_t before = events->classes.count;

	VP_TRY(join_classes(events, text));
	if (!events->writer)
		VP_TRY(make_trace(events));
	else if (events->classes.count == before)
		return NULL;
	return vp_trace_writer_define(events->writer, &events->classes);
}

static bool has_class(const struct vp_guest_events *events, const char *name)
{
	vp_vec_each (&events->classes, class)
		if (!strcmp(class->name, name))
			return true;
	return false;
}

static void say_missing(struct vp_guest_events *events)
{
	struct vp_buffer missing = {0};
	const char *name;

	for (size_t i = 0; (name = vp_events_of_sets(events->options.sets, i)); i++)
		if (!has_class(events, name))
			vp_buffer_printf(&missing, "%s%s", missing.size ? ", " : "", name);
	if (missing.size)
		NOTICE(events, "VM '%s': its guest's kernel does not have %s", events->vm,
		       vp_buffer_text(&missing));
	vp_buffer_deinit(&missing);
}

static void guest_events_say_back(struct vp_guest_events *events)
{
	uint64_t passed = vp_clock_monotonic() - events->gone_at;

	events->missing += passed;
	events->gone_at = 0;
	NOTICE(events, "VM '%s': its agent sends events again after %.1f s", events->vm,
	       (double)passed / SECOND);
}

static void take_classes(void *context, struct vp_slice text)
{
	struct vp_guest_events *events = context;
	bool is_first = !events->writer;
	struct vp_error *error = guest_events_add_classes(events, text);

	if (error)
		have_problem(events, vp_error_message(error));
	else if (is_first)
		say_missing(events);
	if (!error && events->gone_at)
		guest_events_say_back(events);
	vp_error_free(error);
}

static void guest_events_take_tasks(void *context, const struct vp_events_task *tasks, size_t count)
{
	enum { MAX_TASKS = 1 << 16 };
	struct vp_guest_events *events = context;

	for (size_t i = 0; i < count && events->tasks.count < MAX_TASKS; i++)
		vp_vec_push(&events->tasks, tasks[i]);
}

/* Writes the thread names before the first event: they are valid from then on. */
static void put_tasks(struct vp_guest_events *events, uint32_t vcpu)
{
	vp_vec_each (&events->tasks, known) {
		struct vp_task task = {
		    .time = events->tasks_from > events->from ? events->tasks_from : events->from,
		    .id = VP_ID_task,
		    .pid = known->pid,
		    .tid = known->tid};
		memcpy(task.comm, known->comm, sizeof(task.comm));
		vp_trace_append(events->writer, guest_events_id_of(vcpu), &task);
	}
	vp_vec_deinit(&events->tasks);
}

static void guest_events_take_clock(void *context, const struct vp_events_clock *clock)
{
	struct vp_guest_events *events = context;

	vp_clock_line_add(&events->line, &(struct vp_clock_point){.from = clock->ns,
								  .to = clock->counter,
								  .ns = clock->ns,
								  .error_ns = clock->error_ns});
}

/* Ignores vCPUs that the domain does not have. */
static void guest_events_take_time(void *context, uint32_t number,
				   const struct vp_events_time *time)
{
	struct vp_guest_events *events = context;
	struct vp_vcpu *vcpu = any_vcpu_of(events, number);
	const struct vp_xen_time of_guest = {time->tsc, time->ns, time->mul, time->shift};

	if (!vcpu || !events->options.counters || !vp_xen_time_is_sane(&of_guest)) {
		events->strange++;
		return;
	}
	uint64_t error = vp_xen_counters_update(events->options.counters, &of_guest, vcpu);
	if (error > events->counter_error_ns)
		events->counter_error_ns = error;
	if (vcpu->has_tsc)
		take_early(events, number);
}

static uint64_t counter_at(struct vp_guest_events *events, uint64_t time)
{
	return events->line.points.count ? vp_clock_line_at(&events->line, time) : time;
}

/* Converts the record's time; returns whether to write it. */
static bool complete(struct vp_guest_events *events, const struct vp_vcpu *vcpu,
		     struct vp_defined_record *record)
{
	record->time =
	    vp_guest_clock_at(events->options.clock, vcpu, counter_at(events, record->time));
	if (record->time < events->from || record->time > events->to)
		return false;
	if (!events->options.flight_bytes &&
	    events->bytes + record->size > events->options.max_bytes) {
		if (!events->refused++)
			NOTICE(events,
			       "VM '%s': its agent sent more than %" PRIu64
			       " MiB of events: later ones are counted as lost (--agent-limit)",
			       events->vm, events->options.max_bytes >> 20);
		guest_events_stream_of(events, vcpu->number)->lost++;
		return false;
	}
	events->bytes += record->size;
	events->written++;
	events->latest = record->time > events->latest ? record->time : events->latest;
	return true;
}

static void guest_events_put_run(struct vp_guest_events *events, uint32_t vcpu, struct vp_run *run)
{
	char *end = run->bytes + run->size;

	if (run->n)
		vp_trace_append_run(events->writer, guest_events_id_of(vcpu), run);
	*run = (struct vp_run){.bytes = end};
}

/* Class number for the agent's number, or 0. */
static uint16_t id_here(const struct vp_guest_events *events, uint16_t id)
{
	size_t index = (size_t)id - VP_ID_DEFINED;

	return index < events->ids.count ? events->ids.at[index] : 0;
}

/* Writes records up to the first invalid one; returns their size. */
static size_t put_records(struct vp_guest_events *events, const struct vp_vcpu *vcpu, char *bytes,
			  size_t size)
{
	struct vp_run run = {.bytes = bytes};
	size_t end = 0;

	while (size - end >= sizeof(struct vp_defined_record)) {
		struct vp_defined_record *record = (void *)(bytes + end);
		record->id = id_here(events, record->id);
		const struct vp_event_class *class =
		    vp_event_classes_find(&events->classes, record->id);
		if (!class || record->size > size - end || !vp_event_is_whole(class, record))
			break;
		bool is_wanted = complete(events, vcpu, record);
		if (!is_wanted || run.size + record->size > VP_RUN_MAX)
			guest_events_put_run(events, vcpu->number, &run);
		end += record->size;
		if (!is_wanted) {
			run.bytes = bytes + end;
			continue;
		}
		if (!run.n++)
			run.first = record->time;
		else if (record->time < run.last)
			record->time = run.last;
		run.last = record->time;
		run.size += record->size;
	}
	guest_events_put_run(events, vcpu->number, &run);
	return end;
}

/* NULL: too many vCPUs. */
static struct early *early_of(struct vp_guest_events *events, uint32_t vcpu)
{
	vp_vec_each (&events->early, early)
		if (early->vcpu == vcpu)
			return early;
	if (events->early.count == MAX_EARLY_VCPUS)
		return NULL;
	vp_vec_push(&events->early, (struct early){.vcpu = vcpu});
	return &events->early.at[events->early.count - 1];
}

static void keep_early(struct vp_guest_events *events, uint32_t vcpu, const char *bytes,
		       size_t size)
{
	struct early *early = early_of(events, vcpu);

	if (!early || size > MAX_EARLY_BYTES - events->early_bytes) {
		events->strange++;
		return;
	}
	vp_buffer_append(&early->records, bytes, size);
	events->early_bytes += size;
}

static void guest_events_take_records(void *context, uint32_t number, char *bytes, size_t size)
{
	struct vp_guest_events *events = context;
	const struct vp_vcpu *vcpu = guest_events_vcpu_of(events, number);

	if (!events->writer) {
		events->strange++;
		return;
	}
	if (!vcpu) {
		keep_early(events, number, bytes, size);
		return;
	}
	guest_events_stream_of(events, number);
	events->failures = 0;
	if (events->from != UINT64_MAX)
		put_tasks(events, number);
	events->strange += put_records(events, vcpu, bytes, size) != size;
}

static void take_lost(void *context, uint32_t number, uint64_t count)
{
	struct vp_guest_events *events = context;

	if (!guest_events_vcpu_of(events, number)) {
		struct early *early = early_of(events, number);
		if (early)
			early->lost = count;
		else
			events->strange++;
	} else if (!events->refused) {
		struct stream *stream = guest_events_stream_of(events, number);
		stream->lost = stream->lost_before + count;
	}
}

static void take_early(struct vp_guest_events *events, uint32_t vcpu)
{
	vp_vec_each (&events->early, early) {
		struct vp_buffer records = early->records;
		if (early->vcpu != vcpu)
			continue;
		early->records = (struct vp_buffer){0};
		events->early_bytes -= records.size;
		if (records.size)
			guest_events_take_records(events, vcpu, records.bytes, records.size);
		if (early->lost)
			take_lost(events, vcpu, early->lost);
		vp_buffer_deinit(&records);
	}
}

/* Number of dropped events of vCPUs that KVM does not have. */
static uint64_t unknown_of(const struct vp_guest_events *events)
{
	uint64_t unknown = 0;

	vp_vec_each (&events->early, early)
		unknown += early->records.size != 0;
	return unknown;
}

static void take_malformed(void *context, uint64_t count)
{
	struct vp_guest_events *events = context;

	events->malformed = events->malformed_before + count;
}

/* Closes the connection: the end was reached. */
static void close_agent(struct vp_guest_events *events)
{
	vp_agent_events_free(events->agent);
	events->agent = NULL;
	events->state = VP_AGENT_EVENTS_ASKED;
}

static void guest_events_pause_asking(struct vp_guest_events *events, uint64_t now)
{
	uint64_t pause = AGAIN_S * SECOND;

	for (unsigned i = 0; i < events->failures && pause < LONGEST_AGAIN_S * SECOND; i++)
		pause *= 2;
	events->failures++;
	events->next = now + (pause < LONGEST_AGAIN_S * SECOND ? pause : LONGEST_AGAIN_S * SECOND);
}

static void end_agent(struct vp_guest_events *events)
{
	const char *why = vp_agent_events_problem(events->agent);
	bool is_unasked = events->state == VP_AGENT_EVENTS_ENDED && events->to == UINT64_MAX;

	if (is_unasked)
		why = "its agent was ended";
	if ((events->state == VP_AGENT_EVENTS_GONE || is_unasked) && events->writer) {
		if (!events->gone_at)
			NOTICE(events,
			       "VM '%s': guest events are missing from now on: %s; contacting its "
			       "agent again every %d to %d s",
			       events->vm, why, AGAIN_S, LONGEST_AGAIN_S);
		events->gone_at = events->gone_at ? events->gone_at : vp_clock_monotonic();
		free(events->problem);
		events->problem = vp_strdup(why);
	} else if (events->state == VP_AGENT_EVENTS_GONE) {
		have_problem(events, why);
	}
	close_agent(events);
	guest_events_pause_asking(events, vp_clock_monotonic());
}

/* Prepares for the next agent, whose stream does not continue the previous one. */
static void begin_anew(struct vp_guest_events *events)
{
	vp_vec_each (&events->streams, stream)
		stream->lost_before = stream->lost;
	vp_vec_each (&events->early, early) {
		events->strange += early->records.size != 0;
		vp_buffer_deinit(&early->records);
	}
	vp_vec_deinit(&events->early);
	events->early_bytes = 0;
	vp_vec_deinit(&events->tasks);
	events->tasks_from = events->latest;
	events->malformed_before = events->malformed;
	uint64_t error_ns = events->line.error_ns;
	vp_clock_line_deinit(&events->line);
	events->line = (struct vp_clock_line){.error_ns = error_ns};
}

bool vp_guest_events_again(struct vp_guest_events *events, const struct vp_vm *vm, uint64_t now)
{
	if (events->agent || now < events->next || events->to != UINT64_MAX)
		return false;
	begin_anew(events);
	struct vp_error *error = guest_events_start(events, vm);
	if (error) {
		have_problem(events, vp_error_message(error));
		guest_events_pause_asking(events, now);
	}
	vp_error_free(error);
	return events->agent;
}

void vp_guest_events_give_up(struct vp_guest_events *events)
{
	if (events->agent && (events->options.counters || events->state < VP_AGENT_EVENTS_SENDING))
		close_agent(events);
}

bool vp_guest_events_receive(struct vp_guest_events *events, int timeout_ms)
{
	const struct vp_agent_events_receiver receiver = {.context = events,
							  .classes = take_classes,
							  .tasks = guest_events_take_tasks,
							  .clock = guest_events_take_clock,
							  .time = guest_events_take_time,
							  .records = guest_events_take_records,
							  .lost = take_lost,
							  .malformed = take_malformed};

	if (!events->agent)
		return false;
	events->state = vp_agent_events_receive(events->agent, timeout_ms, MAX_AT_ONCE, &receiver);
	if (events->state == VP_AGENT_EVENTS_ABSENT)
		have_problem(events, vp_agent_events_problem(events->agent));
	else if (events->state >= VP_AGENT_EVENTS_ENDED)
		end_agent(events);
	return events->agent != NULL;
}

bool vp_guest_events_is_asking(const struct vp_guest_events *events)
{
	return events->agent && events->state == VP_AGENT_EVENTS_ASKED;
}

bool vp_guest_events_is_open(const struct vp_guest_events *events)
{
	return events->agent != NULL;
}

void vp_guest_events_begin(struct vp_guest_events *events, uint64_t now)
{
	events->from = now;
}

void vp_guest_events_stop(struct vp_guest_events *events, uint64_t now)
{
	events->to = now;
	if (events->agent && events->state == VP_AGENT_EVENTS_SENDING)
		vp_agent_events_stop(events->agent);
	else if (events->agent)
		close_agent(events);
}

void vp_guest_events_flush(struct vp_guest_events *events)
{
	if (!events->writer)
		return;
	vp_vec_each (&events->streams, stream)
		vp_trace_flush(events->writer, guest_events_id_of(stream->vcpu), stream->lost);
	int failure = vp_trace_take_failure(events->writer);
	if (failure && !events->problem)
		have_problem(events, strerror(failure));
}

void vp_guest_events_request_flush(struct vp_guest_events *events)
{
	if (events->agent)
		vp_agent_events_flush(events->agent);
}

bool vp_guest_events_flush_pending(const struct vp_guest_events *events)
{
	return events->agent && vp_agent_events_is_flushing(events->agent);
}

/* Time from which all of the guest's events are in memory: a guest that floods shortens only its
 * own history. */
static uint64_t guest_events_reach_of(struct vp_guest_events *events, uint64_t from)
{
	uint64_t reach = vp_trace_writer_reach(events->writer);

	if (reach < from)
		return from;
	if (!events->is_short)
		NOTICE(events,
		       "VM '%s': guest events overflowed their --flight buffer: in the snapshot "
		       "they start %" PRIu64 " ms after the host's",
		       events->vm, (reach - from) / 1000000);
	events->is_short = true;
	return reach + 1;
}

struct vp_error *vp_guest_events_snapshot(struct vp_guest_events *events, const char *path,
					  uint64_t from)
{
	struct vp_trace_counts counts;

	return events->writer
		   ? vp_trace_writer_snapshot(events->writer, path,
					      guest_events_reach_of(events, from), &counts)
		   : NULL;
}

void vp_guest_events_forget(struct vp_guest_events *events, uint64_t reach)
{
	bool sends = events->agent && events->state == VP_AGENT_EVENTS_SENDING;

	if (sends || !events->writer || events->latest >= reach)
		return;
	vp_trace_writer_free(events->writer);
	events->writer = NULL;
	vp_event_classes_deinit(&events->classes);
	if (!events->problem)
		events->problem = vp_strdup("they were overwritten");
}

uint64_t vp_guest_events_count(const struct vp_guest_events *events)
{
	return events->written;
}

uint64_t vp_guest_events_lost(const struct vp_guest_events *events)
{
	uint64_t lost = events->writer ? vp_trace_unwritten(events->writer, VP_STREAMS_ALL) : 0;

	vp_vec_each (&events->streams, stream)
		lost += stream->lost;
	return lost;
}

struct vp_agent_outcome vp_guest_events_outcome(const struct vp_guest_events *events)
{
	uint64_t now = events->to < vp_clock_monotonic() ? events->to : vp_clock_monotonic();
	struct vp_agent_outcome ret = {
	    .request = VP_AGENT_EVENTS,
	    .status = events->writer ? VP_AGENT_SERVED : VP_AGENT_FAILED,
	    .port = vp_agent_port_shown(events->options.port, events->options.counters != NULL),
	    .problem = events->problem ? vp_strdup(events->problem) : NULL};

	if (!events->writer)
		return ret;
	ret.events = events->written;
	ret.lost = vp_guest_events_lost(events);
	ret.invalid = events->malformed + events->strange + unknown_of(events);
	ret.error_ns =
	    events->options.clock->line.error_ns + events->line.error_ns + events->counter_error_ns;
	ret.missing_ns = events->missing +
			 (events->gone_at && now > events->gone_at ? now - events->gone_at : 0);
	return ret;
}
