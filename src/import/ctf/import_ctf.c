/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CTF traces of a kernel tracer: LTTng's, perf's (perf data convert --to-ctf), and vperf's own
 * exports. They are read twice, so that threads and vCPUs are known before the first event is
 * passed on. */
#include "import/ctf/import_ctf.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/common/import_channel.h"
#include "import/ctf/babeltrace.h"
#include "schema/event_class.h"

#include <string.h>
#include <unistd.h>

#include "import/ctf/ctf_events.h"

enum { USUAL_EVENTS = 1 << 16, MAX_CPUS = 4096, MAX_MARKS = 1 << 20, MAX_NAMES = 1 << 20 };
enum { NO_CLASS = UINT32_MAX, BEHIND_MARKS = 3 /* ns, as in export/export_ctf.c */ };

struct cpu {
	uint32_t first, current; /* thread ids */
	bool switched;
	struct vp_buffer records;
};

struct vcpu {
	uint32_t tid, number;
};

struct ctf {
	struct vp_babeltrace bt;
	char *path;
	const struct vp_import_channel *channel;
	struct vp_error *error;
	struct vp_ctf_events events;
	VP_VEC(struct cpu) cpus;
	struct vp_map process_of_tid, vcpu_of_tid;
	VP_VEC(struct vcpu) vcpus;
	VP_VEC(struct vp_import_mark) marks;
	struct vp_buffer names;
	struct vp_map named; /* threads with a name already */
	bool begun;          /* the trace's environment was checked */
	bool exported;       /* by vperf: events up to its marks are synthetic */
	bool sending;        /* the second pass */
	uint64_t marked;     /* time of the last mark */
	uint64_t span[2], lost, strange;
};

/* The current event. */
struct event {
	const struct bt_event *event;
	uint32_t class, tid;
	const char *name;
	uint64_t time;
	struct cpu *cpu;
};

static const char *environment(const struct ctf *ctf, const struct bt_trace *trace,
			       const char *name)
{
	const struct bt_value *value =
	    ctf->bt.trace_borrow_environment_entry_value_by_name_const(trace, name);

	if (!value || ctf->bt.value_get_type(value) != VP_BT_VALUE_STRING)
		return NULL;
	return ctf->bt.value_string_get(value);
}

static void send_text(const struct ctf *ctf, enum vp_import_machine what, const char *text)
{
	if (text)
		vp_import_send(
		    ctf->channel,
		    (struct vp_import_msg){.kind = VP_IMPORT_MACHINE, .cpu = (uint32_t)what}, text,
		    strlen(text));
}

static uint64_t ns_of(uint64_t cycles, uint64_t frequency)
{
	return frequency ? (uint64_t)((unsigned __int128)cycles * 1000000000 / frequency) : cycles;
}

static struct vp_error *begin_trace(struct ctf *ctf, const struct bt_stream *stream)
{
	const struct vp_babeltrace *bt = &ctf->bt;
	const struct bt_trace *trace = bt->stream_borrow_trace_const(stream);
	const struct bt_clock_class *clock = bt->stream_class_borrow_default_clock_class_const(
	    bt->stream_borrow_class_const(stream));
	const char *tracer = environment(ctf, trace, "tracer_name");
	const char *domain = environment(ctf, trace, "domain");
	int64_t seconds = 0;
	uint64_t cycles = 0;

	ctf->begun = true;
	if (tracer && !strcmp(tracer, "vperf"))
		return vp_error_new("'%s' is part of a recording of vperf already", ctf->path);
	if (!domain || strcmp(domain, "kernel") != 0)
		return vp_error_new("'%s' is not a kernel trace (domain \"kernel\")", ctf->path);
	if (!clock)
		return vp_error_new("'%s' has no clock: the times of its events are unknown",
				    ctf->path);
	ctf->exported = environment(ctf, trace, "exporter") != NULL;
	send_text(ctf, VP_IMPORT_HOSTNAME, environment(ctf, trace, "hostname"));
	send_text(ctf, VP_IMPORT_KERNEL, environment(ctf, trace, "kernel_release"));
	bt->clock_class_get_offset(clock, &seconds, &cycles);
	uint64_t offset =
	    (uint64_t)seconds * 1000000000 + ns_of(cycles, bt->clock_class_get_frequency(clock));
	vp_import_send(ctf->channel,
		       (struct vp_import_msg){.kind = VP_IMPORT_CLOCK, .number = offset}, NULL, 0);
	return NULL;
}

static uint64_t import_ctf_time_of(const struct ctf *ctf, const struct bt_message *message,
				   const struct bt_event *event)
{
	const struct vp_babeltrace *bt = &ctf->bt;
	const struct bt_clock_class *clock = bt->stream_class_borrow_default_clock_class_const(
	    bt->stream_borrow_class_const(bt->event_borrow_stream_const(event)));

	if (!clock)
		return 0;
	return ns_of(bt->clock_snapshot_get_value(
			 bt->message_event_borrow_default_clock_snapshot_const(message)),
		     bt->clock_class_get_frequency(clock));
}

static struct cpu *import_ctf_cpu_of(struct ctf *ctf, const struct bt_event *event)
{
	uint64_t number = 0;

	vp_ctf_context_number(&ctf->bt, event, "cpu_id", &number);
	if (number >= MAX_CPUS)
		return NULL;
	while (ctf->cpus.count <= number)
		vp_vec_push(&ctf->cpus, (struct cpu){0});
	return &ctf->cpus.at[number];
}

static uint32_t import_ctf_number_in(const struct ctf *ctf, const struct event *event,
				     const char *name)
{
	uint64_t number = 0;

	vp_ctf_number(&ctf->bt, event->event, name, &number);
	return (uint32_t)number;
}

/* The thread on the CPU: from the event's context, or from the last switch. */
static uint32_t import_ctf_thread_of(struct ctf *ctf, const struct event *event, bool is_switch)
{
	uint64_t tid;

	if (is_switch)
		return import_ctf_number_in(ctf, event, "prev_tid") |
		       import_ctf_number_in(ctf, event, "prev_pid");
	if (vp_ctf_context_number(&ctf->bt, event->event, "tid", &tid) ||
	    vp_ctf_number(&ctf->bt, event->event, "common_pid", &tid))
		return (int64_t)tid < 0 ? event->cpu->current : (uint32_t)tid;
	return event->cpu->current;
}

static void import_ctf_send_process(struct ctf *ctf, uint32_t tid, uint32_t process)
{
	bool inserted;

	if (tid && process)
		*vp_map_insert(&ctf->process_of_tid, tid, process, &inserted) = process;
}

/* Sends the first name of each thread. */
static void import_ctf_send_name(struct ctf *ctf, uint32_t tid, struct vp_slice name)
{
	size_t size = strnlen(name.bytes, name.size);
	bool inserted = false;

	if (tid && size && !memchr(name.bytes, '\n', size) && ctf->named.count < MAX_NAMES)
		vp_map_insert(&ctf->named, tid, 0, &inserted);
	if (!inserted)
		return;
	vp_buffer_printf(&ctf->names, "%u ", tid);
	vp_buffer_append(&ctf->names, name.bytes, size);
	vp_buffer_string(&ctf->names, "\n");
}

/* Sends thread names of scheduler events. */
static void import_ctf_send_names(struct ctf *ctf, const struct event *event, bool is_switch)
{
	if (is_switch) {
		import_ctf_send_name(ctf, event->tid,
				     vp_ctf_text(&ctf->bt, event->event, "prev_comm"));
		import_ctf_send_name(ctf,
				     import_ctf_number_in(ctf, event, "next_tid") |
					 import_ctf_number_in(ctf, event, "next_pid"),
				     vp_ctf_text(&ctf->bt, event->event, "next_comm"));
	} else if (!strncmp(ctf->events.classes.at[event->class].name, "sched:", 6)) {
		import_ctf_send_name(ctf,
				     import_ctf_number_in(ctf, event, "tid") |
					 import_ctf_number_in(ctf, event, "pid"),
				     vp_ctf_text(&ctf->bt, event->event, "comm"));
	}
}

static void import_ctf_note_mark(struct ctf *ctf, const struct event *event,
				 enum vp_import_side side)
{
	struct vp_import_mark mark = {.time = event->time,
				      .count = import_ctf_number_in(ctf, event, "cnt"),
				      .side = side,
				      .tid = event->tid};

	vp_ctf_number(&ctf->bt, event->event, "vm_uid", &mark.vm);
	if (ctf->marks.count < MAX_MARKS)
		vp_vec_push(&ctf->marks, mark);
	ctf->marked = event->time;
	if (ctf->exported) {
		ctf->span[0] = UINT64_MAX;
		ctf->names.size = 0;
		vp_map_deinit(&ctf->named);
		vp_vec_each (&ctf->cpus, cpu)
			cpu->switched = false;
	}
}

/* Whether it is one of vperf's synthetic events before the first event, which describe vCPU
 * threads for Trace Compass. */
static bool is_made_up(const struct ctf *ctf, const struct event *event)
{
	return ctf->exported && ctf->marks.count && event->time <= ctf->marked + BEHIND_MARKS;
}

static void import_ctf_send_vcpu(struct ctf *ctf, uint32_t tid, uint32_t vcpu)
{
	bool inserted = false;

	if (tid && vcpu < MAX_CPUS)
		vp_map_insert(&ctf->vcpu_of_tid, tid, vcpu, &inserted);
	if (inserted)
		vp_vec_push(&ctf->vcpus, ((struct vcpu){tid, vcpu}));
}

static void import_ctf_note_time(struct ctf *ctf, const struct event *event, bool is_switch)
{
	ctf->span[0] = event->time < ctf->span[0] ? event->time : ctf->span[0];
	ctf->span[1] = event->time > ctf->span[1] ? event->time : ctf->span[1];
	if (is_switch && !event->cpu->switched) {
		event->cpu->switched = true;
		event->cpu->first = event->tid;
	}
}

/* First pass: start time, event classes in use, vCPU threads. */
static void import_ctf_survey_event(struct ctf *ctf, const struct event *event, bool is_switch)
{
	static const char *const marks[] = {[VP_IMPORT_GUEST_SENDS] = "vmsync_gh_guest",
					    [VP_IMPORT_HOST_RECV] = "vmsync_gh_host",
					    [VP_IMPORT_HOST_SENDS] = "vmsync_hg_host",
					    [VP_IMPORT_GUEST_RECV] = "vmsync_hg_guest"};
	uint64_t process;

	if (!is_made_up(ctf, event)) {
		import_ctf_note_time(ctf, event, is_switch);
		import_ctf_send_names(ctf, event, is_switch);
	}
	if (vp_ctf_context_number(&ctf->bt, event->event, "pid", &process))
		import_ctf_send_process(ctf, event->tid, (uint32_t)process);
	if (!strcmp(event->name, "lttng_statedump_process_state")) {
		uint32_t tid = import_ctf_number_in(ctf, event, "tid");
		import_ctf_send_process(ctf, tid, import_ctf_number_in(ctf, event, "pid"));
		import_ctf_send_name(ctf, tid, vp_ctf_text(&ctf->bt, event->event, "name"));
	} else if (!strcmp(event->name, "sched_process_fork")) {
		import_ctf_send_process(ctf, import_ctf_number_in(ctf, event, "child_tid"),
					import_ctf_number_in(ctf, event, "child_pid"));
	} else if (!strcmp(ctf->events.classes.at[event->class].name, "kvm:kvm_entry")) {
		import_ctf_send_vcpu(ctf, event->tid, import_ctf_number_in(ctf, event, "vcpu_id"));
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(marks); i++)
		if (!strcmp(event->name, marks[i]))
			import_ctf_note_mark(ctf, event, (enum vp_import_side)i);
}

static void import_ctf_send_events(struct ctf *ctf, struct cpu *cpu)
{
	const struct vp_import_msg msg = {.kind = VP_IMPORT_EVENTS,
					  .cpu = (uint32_t)(cpu - ctf->cpus.at)};

	if (cpu->records.size)
		vp_import_send(ctf->channel, msg, cpu->records.bytes, cpu->records.size);
	cpu->records.size = 0;
}

static void import_ctf_send_event(struct ctf *ctf, const struct event *event)
{
	if (!vp_ctf_events_convert(&ctf->events, event->class, event->event, event->time,
				   event->tid, &event->cpu->records))
		ctf->strange++;
	if (event->cpu->records.size >= USUAL_EVENTS)
		import_ctf_send_events(ctf, event->cpu);
}

static void import_ctf_take_event(struct ctf *ctf, const struct bt_message *message)
{
	const struct vp_babeltrace *bt = &ctf->bt;
	struct event event = {.event = bt->message_event_borrow_event_const(message)};

	if (!ctf->begun)
		ctf->error = begin_trace(ctf, bt->event_borrow_stream_const(event.event));
	event.class = ctf->error ? NO_CLASS : vp_ctf_events_class(&ctf->events, event.event);
	event.cpu = ctf->error ? NULL : import_ctf_cpu_of(ctf, event.event);
	if (event.class == NO_CLASS || !event.cpu) {
		ctf->strange += ctf->sending;
		return;
	}
	event.name = bt->event_class_get_name(bt->event_borrow_class_const(event.event));
	event.name = event.name ? event.name : "";
	event.time = import_ctf_time_of(ctf, message, event.event);
	bool is_switch = !strcmp(ctf->events.classes.at[event.class].name, "sched:sched_switch");
	event.tid = import_ctf_thread_of(ctf, &event, is_switch);
	if (ctf->sending && is_made_up(ctf, &event))
		return;
	if (ctf->sending)
		import_ctf_send_event(ctf, &event);
	else
		import_ctf_survey_event(ctf, &event, is_switch);
	if (is_switch)
		event.cpu->current = import_ctf_number_in(ctf, &event, "next_tid") |
				     import_ctf_number_in(ctf, &event, "next_pid");
}

static bool take_message(void *context, const struct bt_message *message)
{
	struct ctf *ctf = context;
	unsigned type = ctf->bt.message_get_type(message);
	uint64_t count;

	if (type == VP_BT_MESSAGE_EVENT)
		import_ctf_take_event(ctf, message);
	else if (type == VP_BT_MESSAGE_DISCARDED && ctf->sending)
		ctf->lost +=
		    ctf->bt.message_discarded_events_get_count(message, &count) ? count : 1;
	return !ctf->error;
}

static struct vp_error *go_through(struct ctf *ctf)
{
	struct vp_error *error = vp_babeltrace_read(&ctf->bt, ctf->path, take_message, ctf);

	if (!ctf->error)
		return error;
	vp_error_free(error);
	return VP_TAKE(ctf->error);
}

static void import_ctf_send_vcpus(const struct ctf *ctf)
{
	vp_vec_each (&ctf->vcpus, vcpu) {
		const uint32_t *process = vp_map_find(&ctf->process_of_tid, vcpu->tid);
		struct vp_import_msg msg = {.kind = VP_IMPORT_VCPU, .cpu = vcpu->number};
		msg.number = vcpu->tid | (process ? (uint64_t)*process << 32 : 0);
		vp_import_send(ctf->channel, msg, NULL, 0);
	}
}

static void send_survey(struct ctf *ctf)
{
	struct vp_buffer text = {0};

	vp_import_send(ctf->channel,
		       (struct vp_import_msg){.kind = VP_IMPORT_CPUS, .number = ctf->cpus.count},
		       NULL, 0);
	vp_vec_each (&ctf->marks, mark) {
		const uint32_t *process = vp_map_find(&ctf->process_of_tid, mark->tid);
		mark->process = process ? *process : 0;
	}
	vp_import_send(ctf->channel, (struct vp_import_msg){.kind = VP_IMPORT_MARKS}, ctf->marks.at,
		       ctf->marks.count * sizeof(*ctf->marks.at));
	import_ctf_send_vcpus(ctf);
	vp_import_send(ctf->channel, (struct vp_import_msg){.kind = VP_IMPORT_SPAN}, ctf->span,
		       sizeof(ctf->span));
	vp_event_classes_write(&ctf->events.classes, &text);
	vp_import_send(ctf->channel, (struct vp_import_msg){.kind = VP_IMPORT_BEGIN}, text.bytes,
		       text.size);
	vp_buffer_deinit(&text);
	vp_import_send(ctf->channel, (struct vp_import_msg){.kind = VP_IMPORT_TASKS},
		       ctf->names.bytes, ctf->names.size);
}

static struct vp_error *import_ctf_send_all(void *state, const struct vp_import_channel *channel)
{
	struct ctf *ctf = state;

	ctf->channel = channel;
	VP_TRY(go_through(ctf));
	send_survey(ctf);
	ctf->sending = true;
	vp_vec_each (&ctf->cpus, cpu)
		cpu->current = cpu->first;
	VP_TRY(go_through(ctf));
	vp_vec_each (&ctf->cpus, cpu)
		import_ctf_send_events(ctf, cpu);
	const struct vp_import_msg counts[] = {
	    {.kind = VP_IMPORT_LOST, .number = ctf->lost},
	    {.kind = VP_IMPORT_MALFORMED, .number = ctf->strange},
	    {.kind = VP_IMPORT_LEFT_OUT, .number = ctf->events.left_out},
	};
	for (size_t i = 0; i < VP_ARRAY_SIZE(counts); i++)
		vp_import_send(channel, counts[i], NULL, 0);
	return NULL;
}

/* Directory of the trace: an LTTng session has one per domain. NULL: none. */
static char *find_trace(const char *path)
{
	const char *const folders[] = {"", "/kernel"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(folders); i++) {
		VP_AUTO_FREE char *metadata = vp_format("%s%s/metadata", path, folders[i]);
		if (!access(metadata, F_OK))
			return vp_format("%s%s", path, folders[i]);
	}
	return NULL;
}

static bool import_ctf_has_trace(const char *path)
{
	VP_AUTO_FREE char *found = find_trace(path);

	return found != NULL;
}

static struct vp_error *open_trace(const char *path, const struct vp_import_options *options,
				   void **state)
{
	struct ctf *ctf = vp_alloc(sizeof(*ctf));

	(void)options;
	*ctf = (struct ctf){.path = find_trace(path), .span = {UINT64_MAX, 0}};
	ctf->events.babeltrace = &ctf->bt;
	*state = ctf;
	if (!ctf->path)
		return vp_error_new("'%s' has no file 'metadata'", path);
	return vp_babeltrace_load(&ctf->bt);
}

const struct vp_importer *vp_importer_ctf(void)
{
	static const struct vp_importer importer = {
	    .name = "CTF",
	    .summary = "a directory with a trace of LTTng's kernel tracer, or its folder 'kernel'",
	    .detects = import_ctf_has_trace,
	    .open = open_trace,
	    .send = import_ctf_send_all};

	return &importer;
}
