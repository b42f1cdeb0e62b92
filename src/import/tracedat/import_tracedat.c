/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Importer of trace-cmd's files. */
#include "import/tracedat/import_tracedat.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "import/common/import_channel.h"
#include "import/tracedat/tracedat.h"
#include "schema/event_class.h"
#include "schema/tracepoint_format.h"

#include "import/common/import_file.h"
#include "import/tracedat/import_entries.h"

enum { USUAL_EVENTS = 1 << 16, LONGEST_NAME = 255 };

/* Reader of a CPU's events in one buffer, with the next event. */
struct reader {
	struct vp_tracedat_walk walk;
	bool has_event;
	uint32_t class;
	uint64_t time;
	struct vp_slice raw;
};
typedef VP_VEC(struct reader) reader_list;

struct job {
	const char *path;
	struct vp_slice bytes;
	const struct vp_import_channel *channel;
	struct vp_tracedat file;
	VP_VEC(uint32_t) buffers; /* imported buffers */
	VP_VEC(char *) notes;     /* on imported and skipped buffers */
	struct vp_buffer records;
	struct vp_import_entries entries;
};

static void send_guests(const struct job *job)
{
	vp_vec_each (&job->file.guests, guest) {
		size_t size = guest->name.size < LONGEST_NAME ? guest->name.size : LONGEST_NAME;
		vp_import_send(job->channel,
			       (struct vp_import_msg){.kind = VP_IMPORT_GUEST, .number = guest->id},
			       guest->name.bytes, size);
		vp_vec_each (&guest->threads, thread)
			vp_import_send(job->channel,
				       (struct vp_import_msg){.kind = VP_IMPORT_THREAD,
							      .cpu = thread->cpu,
							      .number = thread->tid},
				       NULL, 0);
	}
}

static void import_tracedat_step(struct job *job, struct reader *reader)
{
	reader->has_event = vp_tracedat_next(&job->file, &reader->walk, &reader->class,
					     &reader->time, &reader->raw);
}

/* Opens the CPU's readers of all imported buffers. */
static void import_tracedat_open_readers(struct job *job, uint32_t cpu, reader_list *ret)
{
	*ret = (reader_list){0};
	vp_vec_each (&job->buffers, buffer) {
		struct reader *reader = vp_vec_push_slot(ret);
		*reader = (struct reader){.walk = {.cpu = cpu, .buffer = *buffer}};
		import_tracedat_step(job, reader);
	}
}

/* The reader with the earliest event; NULL: no more events. */
static struct reader *import_tracedat_next_reader(const reader_list *readers)
{
	struct reader *found = NULL;

	vp_vec_each (readers, reader)
		if (reader->has_event && (!found || reader->time < found->time))
			found = reader;
	return found;
}

static void import_tracedat_close_readers(reader_list *readers)
{
	vp_vec_each (readers, reader)
		vp_buffer_deinit(&reader->walk.piece);
	vp_vec_deinit(readers);
}

/* First pass: start time, event classes in use, vCPU threads. */
static void import_tracedat_survey(struct job *job)
{
	uint64_t span[2] = {UINT64_MAX, 0};

	for (uint32_t cpu = 0; cpu < job->file.cpus; cpu++) {
		reader_list readers;
		struct reader *reader;
		for (import_tracedat_open_readers(job, cpu, &readers);
		     (reader = import_tracedat_next_reader(&readers));) {
			span[0] = reader->time < span[0] ? reader->time : span[0];
			span[1] = reader->time > span[1] ? reader->time : span[1];
			vp_import_entries_update(&job->entries, &job->file, reader->class,
						 reader->raw, 0, job->channel);
			import_tracedat_step(job, reader);
		}
		import_tracedat_close_readers(&readers);
	}
	vp_import_send(job->channel, (struct vp_import_msg){.kind = VP_IMPORT_SPAN}, span,
		       sizeof(span));
}

static void import_tracedat_send_begin(const struct job *job)
{
	struct vp_buffer text = {0};

	vp_event_classes_write(&job->file.classes, &text);
	vp_import_send(job->channel,
		       (struct vp_import_msg){.kind = VP_IMPORT_BEGIN, .number = job->file.id},
		       text.bytes, text.size);
	vp_buffer_deinit(&text);
	vp_import_send(job->channel, (struct vp_import_msg){.kind = VP_IMPORT_TASKS},
		       job->file.commands.bytes, job->file.commands.size);
}

static void import_tracedat_send_events(struct job *job, uint32_t cpu)
{
	if (job->records.size)
		vp_import_send(job->channel,
			       (struct vp_import_msg){.kind = VP_IMPORT_EVENTS, .cpu = cpu},
			       job->records.bytes, job->records.size);
	job->records.size = 0;
}

static void import_tracedat_send_cpu(struct job *job, uint32_t cpu)
{
	uint64_t missed = 0, strange = 0;
	reader_list readers;
	struct reader *reader;

	for (import_tracedat_open_readers(job, cpu, &readers);
	     (reader = import_tracedat_next_reader(&readers)); import_tracedat_step(job, reader)) {
		strange += !vp_tracepoint_convert(&job->file.classes.at[reader->class],
						  &job->file.layouts.at[reader->class],
						  reader->time, reader->raw, &job->records);
		if (job->records.size >= USUAL_EVENTS)
			import_tracedat_send_events(job, cpu);
	}
	import_tracedat_send_events(job, cpu);
	vp_vec_each (&readers, one) {
		missed += one->walk.missed;
		strange += one->walk.malformed;
	}
	import_tracedat_close_readers(&readers);
	vp_import_send(
	    job->channel,
	    (struct vp_import_msg){.kind = VP_IMPORT_MISSED, .cpu = cpu, .number = missed}, NULL,
	    0);
	vp_import_send(
	    job->channel,
	    (struct vp_import_msg){.kind = VP_IMPORT_MALFORMED, .cpu = cpu, .number = strange},
	    NULL, 0);
}

static bool has_events(struct job *job, uint32_t buffer)
{
	bool found = false;

	for (uint32_t cpu = 0; !found && cpu < job->file.cpus; cpu++) {
		struct reader reader = {.walk = {.cpu = cpu, .buffer = buffer}};
		import_tracedat_step(job, &reader);
		found = reader.has_event;
		vp_buffer_deinit(&reader.walk.piece);
	}
	return found;
}

/* Reason why the buffer's times are unusable, or NULL. */
static const char *clock_problem(const struct vp_tracedat_buffer *buffer)
{
	if (buffer->counts == VP_TRACEDAT_COUNTER)
		return "counts events, not time";
	if (buffer->counts == VP_TRACEDAT_CYCLES)
		return "counts cycles at a rate that is not in the file";
	return NULL;
}

static void import_tracedat_send_notes(struct job *job)
{
	vp_vec_each (&job->notes, note) {
		vp_import_send(job->channel, (struct vp_import_msg){.kind = VP_IMPORT_NOTE}, *note,
			       strlen(*note));
		free(*note);
	}
	vp_vec_deinit(&job->notes);
}

static char *import_tracedat_name_of(const struct vp_tracedat_buffer *buffer)
{
	return buffer->name.size
		   ? vp_format("instance '%.*s'", (int)buffer->name.size, buffer->name.bytes)
		   : vp_strdup("the top-level buffer");
}

static void import_tracedat_take_buffer(struct job *job, uint32_t number)
{
	const struct vp_tracedat_buffer *buffer = &job->file.buffers.at[number];
	const char *problem = clock_problem(buffer);
	VP_AUTO_FREE char *name = import_tracedat_name_of(buffer);

	if (!problem && job->buffers.count &&
	    !vp_tracedat_same_clock(&job->file, job->buffers.at[0], number))
		problem = "differs from that of the previous events";
	if (problem) {
		vp_vec_push(&job->notes,
			    vp_format("events of %s are left out: its clock '%.*s' %s", name,
				      (int)buffer->clock.size, buffer->clock.bytes, problem));
		return;
	}
	if (buffer->counts == VP_TRACEDAT_TICKS)
		vp_vec_push(
		    &job->notes,
		    vp_format("times of %s are multiples of 10 ms: its clock is 'uptime'", name));
	vp_vec_push(&job->buffers, number);
}

/* Chooses the buffers with events and usable times. */
static struct vp_error *choose_buffers(struct job *job)
{
	const struct vp_tracedat *file = &job->file;
	const struct vp_tracedat_buffer *without = NULL;

	for (uint32_t i = 0; i < file->buffers.count; i++) {
		const char *problem = clock_problem(&file->buffers.at[i]);
		if (!has_events(job, i))
			continue;
		import_tracedat_take_buffer(job, i);
		without = problem ? &file->buffers.at[i] : without;
	}
	if (!job->buffers.count && without)
		return vp_error_new(
		    "'%s' has no usable times: its clock '%.*s' %s; trace with 'trace-cmd "
		    "record -C mono'",
		    job->path, (int)without->clock.size, without->clock.bytes,
		    clock_problem(without));
	import_tracedat_send_notes(job);
	return NULL;
}

static struct vp_error *import_tracedat_send_all(void *state,
						 const struct vp_import_channel *channel)
{
	struct job *job = state;

	job->channel = channel;
	VP_TRY(vp_tracedat_open(job->path, job->bytes, &job->file));
	VP_TRY(choose_buffers(job));
	vp_import_send(channel,
		       (struct vp_import_msg){.kind = VP_IMPORT_CPUS, .number = job->file.cpus},
		       NULL, 0);
	if (vp_tracedat_is_unshifted(&job->file))
		vp_import_send(channel, (struct vp_import_msg){.kind = VP_IMPORT_UNSHIFTED}, NULL,
			       0);
	send_guests(job);
	import_tracedat_survey(job);
	import_tracedat_send_begin(job);
	for (uint32_t cpu = 0; cpu < job->file.cpus; cpu++)
		import_tracedat_send_cpu(job, cpu);
	return NULL;
}

static struct vp_error *
import_tracedat_open_file(const char *path, const struct vp_import_options *options, void **state)
{
	struct job *job = vp_alloc(sizeof(*job));

	(void)options;
	*job = (struct job){.path = path};
	*state = job;
	return vp_import_file_map(path, &job->bytes);
}

static bool begins_like_one(const char *path)
{
	static const char magic[] = VP_TRACEDAT_MAGIC;

	return vp_import_file_begins(path, magic, sizeof(magic) - 1);
}

const struct vp_importer *vp_importer_tracedat(void)
{
	static const struct vp_importer importer = {.name = "trace.dat",
						    .summary = "trace-cmd's trace.dat",
						    .detects = begins_like_one,
						    .open = import_tracedat_open_file,
						    .send = import_tracedat_send_all};

	return &importer;
}
