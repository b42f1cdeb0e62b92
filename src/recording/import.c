/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More than five includes: from the confined reader's words to a whole recording. */
#include "recording/import.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "collect/tracedat_reader.h"
#include "recording/import_events.h"
#include "recording/recording.h"
#include "recording/trace_writer.h"

enum { MOST_CPUS = 65535, MOST_VCPUS = 1 << 20, MOST_NAMES = 1 << 22 };

struct thread {
	uint32_t tid, vcpu;
};

struct import {
	const char *directory;
	vp_notices *notes;
	struct vp_recording about;
	vp_vms vms;
	VP_VEC(uint64_t) ids;          /* the VMs' */
	VP_VEC(struct thread) entered; /* threads that entered a guest */
	struct vp_trace_writer *host;
};

/* One of the files. */
struct source {
	struct import *import;
	const char *path;
	bool is_host, begun;
	uint32_t cpus; /* that there are events of */
	uint64_t first, last;
	struct vp_trace_writer *writer; /* of a guest: its own */
	struct vp_import_events events;
	uint64_t missed, strange;
};

static struct vp_error *unexpected(const struct source *source)
{
	return vp_error_new("reading '%s' failed: the process that reads it sent nonsense",
			    source->path);
}

static struct vp_vm *add_vm(struct import *import, struct vp_slice name, uint64_t id)
{
	struct vp_buffer clean = {0};

	vp_text_clean(name.bytes, name.size, &clean);
	struct vp_vm *vm = vp_vec_push_slot(&import->vms);
	*vm = (struct vp_vm){.name = vp_strdup(vp_buffer_text(&clean)),
			     .uuid = vp_strdup(""),
			     .memory = vp_strdup(""),
			     .agent = vp_strdup(""),
			     .at_start = true};
	vp_vec_push(&import->ids, id);
	vp_buffer_deinit(&clean);
	return vm;
}

static int by_tid(const void *a, const void *b)
{
	const struct thread *left = a, *right = b;

	return (left->tid > right->tid) - (left->tid < right->tid);
}

static bool is_known(const struct import *import, uint32_t tid)
{
	vp_vec_each (&import->vms, vm)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->tid == tid)
				return true;
	return false;
}

/*
 * Threads that entered a guest which the file does not know. A VMM makes its vCPUs' threads one
 * after another: a VM's numbers ascend with the threads'.
 */
static void add_unknown_vms(struct import *import)
{
	struct vp_vm *vm = NULL;
	uint64_t assumed = 0;
	uint32_t last = 0;

	if (import->entered.count)
		qsort(import->entered.at, import->entered.count, sizeof(*import->entered.at),
		      by_tid);
	vp_vec_each (&import->entered, thread) {
		if (is_known(import, thread->tid))
			continue;
		if (!vm || thread->vcpu <= last) {
			VP_AUTO_FREE char *name = vp_format("vm-%" PRIu32, thread->tid);
			vm = add_vm(import, (struct vp_slice){name, strlen(name)}, 0);
			assumed++;
		}
		vp_vm_vcpu(vm, thread->vcpu)->tid = thread->tid;
		last = thread->vcpu;
	}
	if (assumed)
		vp_vec_push(
		    import->notes,
		    vp_format("the trace does not say which threads are which VM's: %" PRIu64
			      " VMs are assumed by the order of their vCPUs' threads",
			      assumed));
}

/* The number of its VMM's process is not known: that of its first thread stands for it. */
static void number_vms(struct import *import, uint64_t start)
{
	vp_vec_each (&import->vms, vm) {
		vm->start = start;
		vm->pid = UINT32_MAX >> 8;
		vp_vec_each (&vm->vcpus, vcpu)
			vm->pid = vcpu->tid < vm->pid ? vcpu->tid : vm->pid;
	}
}

static struct vp_error *begin_host(struct source *source)
{
	struct import *import = source->import;
	struct vp_recording *about = &import->about;

	about->start = source->first;
	about->end = source->last;
	VP_TRY(vp_vms_write(import->directory, &import->vms));
	VP_TRY(vp_recording_write(import->directory, about));
	VP_TRY(vp_trace_writer_create_host(import->directory, about->hostname, &import->host));
	return vp_trace_writer_define(import->host, &source->events.classes);
}

static struct vp_error *begin_guest(struct source *source, uint64_t id)
{
	struct import *import = source->import;
	size_t place = 0;

	while (place < import->vms.count && (!id || import->ids.at[place] != id))
		place++;
	if (place == import->vms.count)
		return vp_error_new("'%s' is no guest of the first file's host", source->path);
	const struct vp_vm *vm = &import->vms.at[place];
	import->ids.at[place] = 0; /* once */
	VP_AUTO_FREE char *part = vp_vm_part(&import->vms, vm);
	VP_TRY(vp_trace_writer_create_guest(import->directory, part, vm->name, &source->writer));
	vp_recording_add_instrument(&import->about, "guest-trace");
	return vp_trace_writer_define(source->writer, &source->events.classes);
}

static struct vp_error *begin(struct source *source, uint64_t id, struct vp_slice text)
{
	if (source->begun)
		return unexpected(source);
	source->begun = true;
	if (source->is_host) {
		add_unknown_vms(source->import);
		number_vms(source->import, source->first);
	}
	VP_TRY(vp_import_events_init(&source->events, source->path, text, source->is_host,
				     &source->import->vms));
	return source->is_host ? begin_host(source) : begin_guest(source, id);
}

static struct vp_trace_writer *writer_of(const struct source *source)
{
	return source->is_host ? source->import->host : source->writer;
}

static void put_name(const struct source *source, uint32_t cpu, uint64_t time, uint32_t tid,
		     struct vp_slice name)
{
	const enum vp_stream_class class =
	    source->is_host ? VP_STREAM_TRACE : VP_STREAM_TRACEPOINTS;
	struct vp_task task = {.time = time, .id = VP_ID_task, .pid = tid, .tid = tid};
	size_t size = name.size < sizeof(task.comm) ? name.size : sizeof(task.comm);

	memcpy(task.comm, name.bytes, size);
	vp_trace_append(writer_of(source), (struct vp_stream_id){class, cpu}, &task);
}

/* Each thread's last name: a line is "TID NAME". */
static void take_names(const struct source *source, struct vp_slice text)
{
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;

	for (uint32_t i = 0; i < MOST_NAMES && vp_cursor_line(&lines, &line); i++) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		uint32_t tid = (uint32_t)vp_cursor_decimal(&words);
		struct vp_slice name = vp_cursor_rest(&words);
		if (vp_cursor_ok(&words) && name.size)
			put_name(source, 0, source->first, tid, name);
	}
}

/* What was traced on the host becomes vperf's own events, as far as there are some. */
static struct vp_error *take_events(struct source *source, uint32_t cpu, struct vp_slice bytes)
{
	struct vp_cursor records = vp_cursor_of(bytes.bytes, bytes.size);
	struct vp_import_event event;

	source->cpus = cpu >= source->cpus ? cpu + 1 : source->cpus;
	while (vp_cursor_left(&records)) {
		if (!vp_import_events_next(&source->events, &records, &event))
			return unexpected(source);
		if (event.is_strange) {
			source->strange++;
			continue;
		}
		for (size_t i = 0; i < event.n_names; i++)
			put_name(source, cpu, ((struct vp_record_header *)event.record)->time,
				 event.names[i].tid, event.names[i].comm);
		const struct vp_stream_id id = {
		    event.is_own ? VP_STREAM_TRACE : VP_STREAM_TRACEPOINTS, cpu};
		vp_trace_append(writer_of(source), id, event.record);
	}
	return NULL;
}

static struct vp_error *take_thread(struct source *source, const struct vp_tracedat_news *news)
{
	struct import *import = source->import;
	struct thread thread = {(uint32_t)news->number, news->cpu};

	if (source->begun || !source->is_host || news->cpu >= MOST_CPUS || !thread.tid ||
	    import->entered.count == MOST_VCPUS)
		return source->is_host ? unexpected(source) : NULL;
	if (news->kind == VP_TRACEDAT_VCPU)
		vp_vec_push(&import->entered, thread);
	else if (import->vms.count)
		vp_vm_vcpu(&import->vms.at[import->vms.count - 1], news->cpu)->tid = thread.tid;
	return NULL;
}

static struct vp_error *take_span(struct source *source, struct vp_slice bytes)
{
	struct vp_cursor span = vp_cursor_of(bytes.bytes, bytes.size);

	source->first = vp_cursor_u64(&span);
	source->last = vp_cursor_u64(&span);
	if (vp_cursor_ok(&span) && source->first <= source->last)
		return NULL;
	return vp_cursor_ok(&span) ? vp_error_new("'%s' has no events", source->path)
				   : unexpected(source);
}

static struct vp_error *take(struct source *source, const struct vp_tracedat_news *news,
			     struct vp_slice bytes)
{
	switch ((enum vp_tracedat_kind)news->kind) {
	case VP_TRACEDAT_CPUS:
		if (source->is_host)
			source->import->about.pcpus = (uint32_t)news->number;
		return NULL;
	case VP_TRACEDAT_GUEST:
		if (source->is_host && !source->begun && source->import->vms.count < MOST_CPUS)
			add_vm(source->import, bytes, news->number);
		return NULL;
	case VP_TRACEDAT_THREAD:
	case VP_TRACEDAT_VCPU:
		return take_thread(source, news);
	case VP_TRACEDAT_SPAN:
		return take_span(source, bytes);
	case VP_TRACEDAT_BEGIN:
		return begin(source, news->number, bytes);
	default:
		break;
	}
	if (!source->begun || news->cpu >= MOST_CPUS)
		return unexpected(source);
	if (news->kind == VP_TRACEDAT_NAMES)
		take_names(source, bytes);
	else if (news->kind == VP_TRACEDAT_EVENTS)
		return take_events(source, news->cpu, bytes);
	else if (news->kind == VP_TRACEDAT_MISSED)
		source->missed += news->number;
	else if (news->kind == VP_TRACEDAT_STRANGE)
		source->strange += news->number;
	return NULL;
}

static struct vp_error *hear(struct source *source, struct vp_tracedat_reader *reader)
{
	for (;;) {
		struct vp_tracedat_news news;
		struct vp_slice bytes;
		VP_TRY(vp_tracedat_reader_next(reader, &news, &bytes));
		if (news.kind == VP_TRACEDAT_END)
			return source->begun ? NULL : unexpected(source);
		VP_TRY(take(source, &news, bytes));
	}
}

static struct vp_error *flush(const struct source *source)
{
	struct vp_trace_writer *writer = writer_of(source);

	for (uint32_t cpu = 0; cpu < source->cpus; cpu++) {
		vp_trace_flush(writer, (struct vp_stream_id){VP_STREAM_TRACE, cpu}, 0);
		vp_trace_flush(writer, (struct vp_stream_id){VP_STREAM_TRACEPOINTS, cpu}, 0);
	}
	int failure = vp_trace_take_failure(writer);
	return failure
		   ? vp_error_errno(failure, "cannot write into '%s'", source->import->directory)
		   : NULL;
}

static void note_what_is_missing(const struct source *source)
{
	vp_notices *notes = source->import->notes;

	if (source->missed)
		vp_vec_push(notes, vp_format("'%s': events are missing in %" PRIu64
					     " places: they were lost when it was recorded",
					     source->path, source->missed));
	if (source->strange)
		vp_vec_push(notes, vp_format("'%s': %" PRIu64 " entries are no events of the "
					     "formats that it has, and were skipped",
					     source->path, source->strange));
}

static struct vp_error *import_file(struct import *import, const char *path, bool is_host)
{
	struct source source = {.import = import, .path = path, .is_host = is_host};
	struct vp_tracedat_reader *reader;

	VP_TRY(vp_tracedat_reader_start(path, &reader));
	struct vp_error *error = hear(&source, reader);
	vp_tracedat_reader_free(reader);
	if (!error)
		error = flush(&source);
	note_what_is_missing(&source);
	vp_trace_writer_free(source.writer);
	vp_import_events_deinit(&source.events);
	return error;
}

static struct vp_error *import_all(struct import *import, const char *const *paths, size_t count)
{
	struct vp_recording *about = &import->about;

	for (size_t i = 0; i < count; i++)
		VP_TRY(import_file(import, paths[i], !i));
	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		about->records[kind] = vp_trace_written(import->host, VP_STREAMS(kind));
	return vp_recording_write(import->directory, about);
}

struct vp_error *vp_import_tracedat(const char *const *paths, size_t count, const char *directory,
				    vp_notices *notes)
{
	struct import import = {.directory = directory, .notes = notes};

	vp_recording_describe(&import.about, paths[0]);
	free(import.about.hostname);
	free(import.about.kernel);
	import.about.hostname = vp_strdup("imported");
	import.about.kernel = vp_strdup("unknown");
	import.about.period_ns = 1;
	import.about.by_time = true;
	vp_recording_add_instrument(&import.about, "trace");
	struct vp_error *error = import_all(&import, paths, count);
	vp_trace_writer_free(import.host);
	vp_recording_deinit(&import.about);
	vp_vms_deinit(&import.vms);
	vp_vec_deinit(&import.ids);
	vp_vec_deinit(&import.entered);
	return error;
}
