/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/import.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/text.h"
#include "base/vec.h"
#include "import/common/importer.h"
#include "import/recording/import_clock.h"
#include "import/recording/import_events.h"
#include "import/recording/import_operand.h"
#include "import/recording/import_reader.h"
#include "import/recording/import_samples.h"
#include "import/recording/import_vms.h"
#include "import/recording/importers.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_writer.h"

enum {
	MAX_CPUS = 65535,
	MAX_VCPUS = 1 << 20,
	MAX_NAMES = 1 << 22,
	LONGEST_TEXT = 255,
	LONGEST_NOTE = 1000,
	MAX_NOTES = 100,
	MAX_LOOKED_AT = 100
};

/* An input file: the host's, or a guest's. */
struct source {
	struct import *import;
	struct vp_import_operand operand;
	struct vp_import_reader *reader;
	bool is_host, begun;
	VP_VEC(uint8_t) streams; /* per CPU: streams with events (VP_STREAMS()) */
	uint64_t first, last, id;
	char *hostname;
	size_t vm; /* of a guest: index of its VM */
	struct vp_import_timing timing;
	struct vp_import_clock clock;
	struct vp_buffer classes;       /* text of the event classes */
	struct vp_trace_writer *writer; /* of a guest: its own trace */
	struct vp_import_events events;
	struct vp_import_samples samples;
	uint64_t missed, lost, strange, left_out;
	unsigned notes;
};

struct import {
	const char *directory;
	const struct vp_import_options *options; /* for the host's file */
	vp_notices *notes;
	struct vp_recording about;
	struct vp_import_vms vms;
	struct vp_trace_writer *host;
	VP_VEC(struct source) sources; /* the first one is the host's */
};

static struct vp_error *unexpected(const struct source *source)
{
	return vp_error_new("reading '%s' failed: the process that reads it sent malformed data",
			    source->operand.path);
}

static struct vp_slice import_slice_of(const char *text)
{
	return (struct vp_slice){text, strlen(text)};
}

static struct vp_trace_writer *writer_of(const struct source *source)
{
	return source->is_host ? source->import->host : source->writer;
}

static void import_append(struct source *source, struct vp_stream_id id, void *record)
{
	while (source->streams.count <= id.pcpu)
		vp_vec_push(&source->streams, (uint8_t)0);
	source->streams.at[id.pcpu] |= VP_STREAMS(id.kind);
	vp_trace_append(writer_of(source), id, record);
}

static void import_put_name(struct source *source, uint32_t cpu, uint64_t time, uint32_t tid,
			    struct vp_slice name)
{
	const enum vp_stream_class class =
	    source->is_host ? VP_STREAM_TRACE : VP_STREAM_TRACEPOINTS;
	struct vp_task task = {.time = time, .id = VP_ID_task, .pid = tid, .tid = tid};
	size_t size = name.size < sizeof(task.comm) ? name.size : sizeof(task.comm);

	memcpy(task.comm, name.bytes, size);
	import_append(source, (struct vp_stream_id){class, cpu}, &task);
}

/* Stores thread names, one per line: "TID NAME". */
static void take_names(struct source *source, struct vp_slice text)
{
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	uint64_t time = vp_import_clock_at(&source->clock, source->first);
	struct vp_slice line;

	for (uint32_t i = 0; i < MAX_NAMES && vp_cursor_line(&lines, &line); i++) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		uint32_t tid = (uint32_t)vp_cursor_decimal(&words);
		struct vp_slice name = vp_cursor_rest(&words);
		if (vp_cursor_ok(&words) && name.size)
			import_put_name(source, 0, time, tid, name);
	}
}

/* Converts host events to vperf's own types where these exist. */
static struct vp_error *import_take_events(struct source *source, uint32_t cpu,
					   struct vp_slice bytes)
{
	struct vp_cursor records = vp_cursor_of(bytes.bytes, bytes.size);
	struct vp_import_event event;

	source->events.cpu = cpu;
	while (vp_cursor_left(&records)) {
		if (!vp_import_events_next(&source->events, &records, &event))
			return unexpected(source);
		if (event.is_strange) {
			source->strange++;
			continue;
		}
		struct vp_record_header *header = event.record;
		header->time = vp_import_clock_at(&source->clock, header->time);
		for (size_t i = 0; i < event.n_names; i++)
			import_put_name(source, cpu, header->time, event.names[i].tid,
					event.names[i].comm);
		const struct vp_stream_id id = {
		    event.is_own ? VP_STREAM_TRACE : VP_STREAM_TRACEPOINTS, cpu};
		import_append(source, id, event.record);
	}
	return NULL;
}

static struct vp_error *take_samples(struct source *source, uint32_t cpu, struct vp_slice bytes)
{
	while (source->streams.count <= cpu)
		vp_vec_push(&source->streams, (uint8_t)0);
	source->streams.at[cpu] |= VP_STREAMS(VP_STREAM_PCPU);
	return source->samples.are_there &&
		       vp_import_samples_take(&source->samples, source->import->host, cpu, bytes)
		   ? NULL
		   : unexpected(source);
}

static struct vp_error *import_take_thread(const struct source *source,
					   const struct vp_import_msg *msg)
{
	struct vp_import_vms *vms = &source->import->vms;
	const struct vp_import_thread thread = {
	    (uint32_t)msg->number, (uint32_t)(msg->number >> 32) & VP_PID_MASK, msg->cpu};

	if (!source->is_host)
		return NULL;
	if (source->begun || msg->cpu >= MAX_CPUS || !thread.tid || vms->entered.count == MAX_VCPUS)
		return unexpected(source);
	if (msg->kind == VP_IMPORT_VCPU)
		vp_vec_push(&vms->entered, thread);
	else if (vms->vms.count)
		vp_vm_vcpu(&vms->vms.at[vms->vms.count - 1], msg->cpu)->tid = thread.tid;
	return NULL;
}

static bool import_is_empty(const struct source *source)
{
	return source->first > source->last;
}

static struct vp_error *import_take_span(struct source *source, struct vp_slice bytes)
{
	struct vp_cursor span = vp_cursor_of(bytes.bytes, bytes.size);

	source->first = vp_cursor_u64(&span);
	source->last = vp_cursor_u64(&span);
	if (!vp_cursor_ok(&span))
		return unexpected(source);
	return import_is_empty(source) && source->is_host
		   ? vp_error_new("'%s' has no events", source->operand.path)
		   : NULL;
}

static void take_machine(struct source *source, uint32_t what, struct vp_slice text)
{
	struct vp_buffer clean = {0};

	vp_text_clean(text.bytes, text.size < LONGEST_TEXT ? text.size : LONGEST_TEXT, &clean);
	char **into = what == VP_IMPORT_HOSTNAME ? &source->hostname
		      : source->is_host          ? &source->import->about.kernel
						 : NULL;
	if (into) {
		free(*into);
		*into = vp_strdup(vp_buffer_text(&clean));
	}
	vp_buffer_deinit(&clean);
}

static struct vp_error *take_sampling(struct source *source, struct vp_slice bytes)
{
	struct vp_recording *about = &source->import->about;
	struct vp_import_sampling sampling;
	struct vp_buffer clean = {0};

	if (!source->is_host || source->samples.are_there || bytes.size < sizeof(sampling))
		return unexpected(source);
	memcpy(&sampling, bytes.bytes, sizeof(sampling));
	const struct vp_slice name = {bytes.bytes + sizeof(sampling),
				      bytes.size - sizeof(sampling)};
	vp_text_clean(name.bytes, name.size < LONGEST_TEXT ? name.size : LONGEST_TEXT, &clean);
	source->samples.are_there = true;
	source->samples.by_period = !sampling.tick_ns;
	about->weighting = sampling.tick_ns ? VP_WEIGHTING_TICKS : VP_WEIGHTING_EVENTS;
	about->by_time = sampling.tick_ns != 0;
	about->period_ns = sampling.tick_ns ? sampling.tick_ns : 1;
	about->chains = sampling.has_chains != 0;
	free(about->trigger);
	about->trigger = vp_strdup(vp_buffer_text(&clean));
	vp_recording_add_instrument(about, "profile");
	vp_buffer_deinit(&clean);
	return NULL;
}

static void take_marks(struct source *source, struct vp_slice bytes)
{
	struct vp_import_mark mark;

	for (size_t at = 0;
	     bytes.size - at >= sizeof(mark) && source->timing.marks.count < MAX_VCPUS;
	     at += sizeof(mark)) {
		memcpy(&mark, bytes.bytes + at, sizeof(mark));
		vp_vec_push(&source->timing.marks, mark);
	}
}

static void take_note(struct source *source, struct vp_slice text)
{
	struct vp_buffer clean = {0};

	if (source->notes++ >= MAX_NOTES)
		return;
	vp_text_clean(text.bytes, text.size < LONGEST_NOTE ? text.size : LONGEST_NOTE, &clean);
	vp_vec_push(source->import->notes,
		    vp_format("'%s': %s", source->operand.path, vp_buffer_text(&clean)));
	vp_buffer_deinit(&clean);
}

/* Messages before the start of events. */
static struct vp_error *take_about(struct source *source, const struct vp_import_msg *msg,
				   struct vp_slice bytes)
{
	struct vp_import_vms *vms = &source->import->vms;

	switch ((enum vp_import_kind)msg->kind) {
	case VP_IMPORT_MACHINE:
		take_machine(source, msg->cpu, bytes);
		return NULL;
	case VP_IMPORT_NOTE:
		take_note(source, bytes);
		return NULL;
	case VP_IMPORT_CPUS:
		if (source->is_host)
			source->import->about.pcpus = (uint32_t)msg->number;
		return NULL;
	case VP_IMPORT_CLOCK:
		source->timing.has_clock = true;
		source->timing.offset = (int64_t)msg->number;
		return NULL;
	case VP_IMPORT_UNSHIFTED:
		source->timing.is_unshifted = true;
		return NULL;
	case VP_IMPORT_MARKS:
		take_marks(source, bytes);
		return NULL;
	case VP_IMPORT_GUEST:
		if (source->is_host && vms->vms.count < MAX_CPUS)
			vp_import_vms_add(vms, bytes, msg->number);
		return NULL;
	case VP_IMPORT_THREAD:
	case VP_IMPORT_VCPU:
		return import_take_thread(source, msg);
	case VP_IMPORT_SPAN:
		return import_take_span(source, bytes);
	case VP_IMPORT_SAMPLING:
		return take_sampling(source, bytes);
	case VP_IMPORT_BEGIN:
		source->begun = true;
		source->id = msg->number;
		vp_buffer_append(&source->classes, bytes.bytes, bytes.size);
		return NULL;
	default:
		return unexpected(source);
	}
}

static struct vp_error *import_take(struct source *source, const struct vp_import_msg *msg,
				    struct vp_slice bytes)
{
	if (msg->cpu >= MAX_CPUS)
		return unexpected(source);
	switch ((enum vp_import_kind)msg->kind) {
	case VP_IMPORT_TASKS:
		take_names(source, bytes);
		return NULL;
	case VP_IMPORT_EVENTS:
		return import_take_events(source, msg->cpu, bytes);
	case VP_IMPORT_MISSED:
		source->missed += msg->number;
		return NULL;
	case VP_IMPORT_LOST:
		source->lost += msg->number;
		return NULL;
	case VP_IMPORT_MALFORMED:
		source->strange += msg->number;
		return NULL;
	case VP_IMPORT_LEFT_OUT:
		source->left_out += msg->number;
		return NULL;
	case VP_IMPORT_NOTE:
		take_note(source, bytes);
		return NULL;
	case VP_IMPORT_MAPS:
		return source->samples.are_there
			   ? vp_import_samples_map(&source->samples, msg->number, bytes)
			   : unexpected(source);
	case VP_IMPORT_SAMPLES:
		return take_samples(source, msg->cpu, bytes);
	default:
		return unexpected(source);
	}
}

/* Receives messages up to the start of events: VMs of all sources must be known before the first
 * event. */
static struct vp_error *receive_about(struct source *source)
{
	struct vp_import_msg msg;
	struct vp_slice bytes;

	const struct vp_import_options none = {0};
	const struct vp_importer *importer = vp_importer_of(source->operand.path);
	if (source->is_host && importer)
		source->import->about.imported = vp_strdup(importer->name);
	VP_TRY(vp_import_reader_start(source->operand.path,
				      source->is_host ? source->import->options : &none,
				      &source->reader));
	while (!source->begun) {
		VP_TRY(vp_import_reader_next(source->reader, &msg, &bytes));
		VP_TRY(take_about(source, &msg, bytes));
	}
	return NULL;
}

static struct vp_error *receive_events(struct source *source)
{
	struct vp_import_msg msg;
	struct vp_slice bytes;

	for (;;) {
		VP_TRY(vp_import_reader_next(source->reader, &msg, &bytes));
		if (msg.kind == VP_IMPORT_END)
			return NULL;
		VP_TRY(import_take(source, &msg, bytes));
	}
}

/* The VM of a guest's file: by mappings in both traces, or as given by the user. SIZE_MAX:
 * unknown. */
static size_t import_find_vm(struct source *source)
{
	struct vp_import_vms *vms = &source->import->vms;
	const struct source *host = &source->import->sources.at[0];
	const char *name = source->operand.name ? source->operand.name : source->hostname;
	struct vp_slice its = import_slice_of(name ? name : "guest");

	for (size_t i = 0; source->id && i < vms->vms.count; i++)
		if (vms->ids.at[i] == source->id)
			return i;
	if (source->operand.pid)
		return vp_import_vms_claim(vms, source->operand.pid, source->operand.pid, its);
	for (size_t i = 0; i < source->timing.marks.count && i < MAX_LOOKED_AT; i++)
		vp_vec_each (&host->timing.marks, other)
			if (other->vm == source->timing.marks.at[i].vm && other->tid)
				return vp_import_vms_claim(vms, other->process, other->tid, its);
	return SIZE_MAX;
}

static struct vp_error *link_guest(struct source *source)
{
	struct vp_import_vms *vms = &source->import->vms;
	const char *path = source->operand.path;

	if (source->vm == SIZE_MAX && source->operand.pid)
		return vp_error_new("no thread of process %" PRIu32
				    " entered a guest, as '%s' requires",
				    source->operand.pid, path);
	if (source->vm == SIZE_MAX && source->id)
		return vp_error_new(
		    "'%s' is not a guest of the first file's host: neither file names the other",
		    path);
	if (source->vm == SIZE_MAX)
		source->vm = vp_import_vms_only(vms);
	if (source->vm == SIZE_MAX || vms->taken.at[source->vm])
		return vp_error_new(
		    "cannot match '%s' to a VM of the first file: name it as NAME@PID:%s, where "
		    "PID is the pid of its VMM or the TID of a vCPU thread",
		    path, path);
	vms->taken.at[source->vm] = true;
	const char *name = source->operand.name ? source->operand.name : source->hostname;
	if (name)
		vp_import_vms_rename(vms, source->vm, import_slice_of(name));
	return NULL;
}

static struct vp_error *link_all(struct import *import)
{
	vp_vec_each (&import->sources, source)
		source->vm = source->is_host ? 0 : import_find_vm(source);
	vp_import_vms_add_unknown(&import->vms, import->notes);
	vp_vec_each (&import->sources, source)
		if (!source->is_host && source->vm != SIZE_MAX)
			VP_TRY(link_guest(source));
	vp_vec_each (&import->sources, source)
		if (!source->is_host && source->vm == SIZE_MAX)
			VP_TRY(link_guest(source));
	vp_import_vms_finish(&import->vms, import->sources.at[0].first);
	return NULL;
}

static void note_clock(const struct source *source, const struct vp_import_clock_fit *fit)
{
	const char *path = source->operand.path;
	char *note = NULL;

	if (source->timing.is_unshifted)
		note = vp_format(
		    "times of '%s' are assumed to be host times: the file has no clock offset "
		    "(trace-cmd measures it if it records host and guest together: -A)",
		    path);
	if (fit->way == VP_IMPORT_CLOCK_MESSAGES)
		note = vp_format("times of '%s' are converted to host times by %" PRIu64
				 " messages in both directions, within %" PRIu64 " ns",
				 path, fit->messages, fit->error_ns);
	if (fit->way == VP_IMPORT_CLOCK_ONE_WAY)
		note = vp_format("times of '%s' are converted to host times by %" PRIu64
				 " messages in one direction: the latency of the fastest one is an "
				 "unknown error",
				 path, fit->messages);
	if (fit->way == VP_IMPORT_CLOCK_WALL_CLOCKS)
		note =
		    vp_format("times of '%s' are converted to host times by the wall clocks of "
			      "both at the start of tracing: their difference is an unknown error",
			      path);
	if (note)
		vp_vec_push(source->import->notes, note);
}

static struct vp_error *begin_host(struct source *source)
{
	struct import *import = source->import;
	struct vp_recording *about = &import->about;

	if (source->events.given.count)
		vp_recording_add_instrument(about, "trace");
	about->start = source->first;
	about->end = source->last;
	if (source->hostname) {
		free(about->hostname);
		about->hostname = vp_strdup(source->hostname);
	}
	VP_TRY(vp_vms_write(import->directory, &import->vms.vms));
	VP_TRY(vp_recording_write(import->directory, about));
	VP_TRY(vp_trace_writer_create_host(import->directory, about->hostname, &import->host));
	if (source->samples.are_there)

		vp_import_samples_begin(&source->samples, import->directory, &import->vms.vms);
	return source->events.given.count
		   ? vp_trace_writer_define(import->host, &source->events.classes)
		   : NULL;
}

static struct vp_error *import_begin_guest(struct source *source)
{
	struct import *import = source->import;
	const struct vp_vm *vm = &import->vms.vms.at[source->vm];
	VP_AUTO_FREE char *part = vp_vm_part(&import->vms.vms, vm);

	const struct vp_import_clock_fit fit =
	    vp_import_clock_make(&import->sources.at[0].timing, &source->timing, &source->clock);
	note_clock(source, &fit);
	VP_TRY(vp_trace_writer_create_guest(import->directory, part, vm->name, &source->writer));
	vp_recording_add_instrument(&import->about, "guest-trace");
	return vp_trace_writer_define(source->writer, &source->events.classes);
}

static struct vp_error *import_begin(struct source *source)
{
	const struct vp_slice text = {source->classes.bytes, source->classes.size};

	VP_TRY(vp_import_events_init(&source->events, source->operand.path, text, source->is_host,
				     &source->import->vms.vms));
	return source->is_host ? begin_host(source) : import_begin_guest(source);
}

/* Losses are recorded in the first stream. */
static struct vp_error *import_flush(const struct source *source)
{
	struct vp_trace_writer *writer = writer_of(source);
	uint64_t lost = source->lost;

	for (uint32_t cpu = 0; cpu < source->streams.count; cpu++)
		for (int kind = 0; kind < VP_STREAM_CLASSES; kind++) {
			const struct vp_stream_id id = {(enum vp_stream_class)kind, cpu};
			if (!(source->streams.at[cpu] & VP_STREAMS(kind)))
				continue;
			vp_trace_flush(writer, id, lost);
			lost = 0;
		}
	int failure = vp_trace_take_failure(writer);
	return failure ? vp_error_errno(failure, "cannot write to '%s'", source->import->directory)
		       : NULL;
}

static void import_note_count(const struct source *source, uint64_t count, const char *what)
{
	if (count)
		vp_vec_push(source->import->notes,
			    vp_format("'%s': %" PRIu64 " %s", source->operand.path, count, what));
}

static void import_note_missing(const struct source *source)
{
	import_note_count(source, source->missed,
			  "gaps with lost events: the tracer's buffers were full");
	import_note_count(source, source->lost, "events were lost by the tracer");
	import_note_count(source, source->strange + source->samples.strange,
			  "entries of an unknown format or vCPU were skipped");
	import_note_count(source, source->left_out,
			  "fields of its events are neither numbers nor text, and were left out");
}

static struct vp_error *import_events_of(struct source *source)
{
	if (import_is_empty(source)) {
		vp_vec_push(source->import->notes,
			    vp_format("'%s' has no events", source->operand.path));
		return NULL;
	}
	VP_TRY(import_begin(source));
	VP_TRY(receive_events(source));
	VP_TRY(import_flush(source));
	import_note_missing(source);
	return NULL;
}

static struct vp_error *import_all(struct import *import, const char *const *operands, size_t count)
{
	struct vp_recording *about = &import->about;

	for (size_t i = 0; i < count; i++) {
		struct source source = {.import = import, .is_host = !i};
		VP_TRY(vp_import_operand_parse(operands[i], &source.operand));
		vp_vec_push(&import->sources, source);
	}
	vp_vec_each (&import->sources, source)
		VP_TRY(receive_about(source));
	VP_TRY(link_all(import));
	vp_vec_each (&import->sources, source)
		VP_TRY(import_events_of(source));
	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		about->records[kind] = vp_trace_written(import->host, VP_STREAMS(kind));
	const struct source *host = &import->sources.at[0];
	about->lost[host->samples.are_there ? VP_STREAM_PCPU : VP_STREAM_TRACE] = host->lost;
	return vp_recording_write(import->directory, about);
}

static void deinit_source(struct source *source)
{
	vp_import_reader_free(source->reader);
	vp_import_operand_deinit(&source->operand);
	free(source->hostname);
	vp_vec_deinit(&source->streams);
	vp_vec_deinit(&source->timing.marks);
	vp_import_clock_deinit(&source->clock);
	vp_buffer_deinit(&source->classes);
	vp_trace_writer_free(source->writer);
	vp_import_events_deinit(&source->events);
	vp_import_samples_deinit(&source->samples);
}

struct vp_error *vp_import(const char *const *operands, size_t count,
			   const struct vp_import_options *options, const char *directory,
			   vp_notices *notes)
{
	struct import import = {.directory = directory, .options = options, .notes = notes};

	vp_recording_describe(&import.about, operands[0]);
	free(import.about.hostname);
	free(import.about.kernel);
	import.about.hostname = vp_strdup("imported");
	import.about.kernel = vp_strdup("unknown");
	import.about.period_ns = 1;
	import.about.by_time = true;
	struct vp_error *error = import_all(&import, operands, count);
	vp_vec_each (&import.sources, source)
		deinit_source(source);
	vp_vec_deinit(&import.sources);
	vp_trace_writer_free(import.host);
	vp_recording_deinit(&import.about);
	vp_import_vms_deinit(&import.vms);
	return error;
}
