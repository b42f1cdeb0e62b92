/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/trace_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"
#include "schema/records.h"
#include "store/packet_states.h"
#include "store/packet_store.h"
#include "store/packet_threads.h"
#include "store/packet_zstd.h"

/* Shorter runs are copied into the present packet; longer ones become a packet. */
enum { LONG_RUN = 8 * 1024, USUAL_PACKET = 2 * LONG_RUN };

struct stream {
	struct vp_stream_id id;
	int fd;
	uint64_t file_size;
	bool is_begun;            /* it has a packet */
	struct vp_buffer records; /* unflushed */
	uint64_t n_records;       /* number of them */
	uint64_t first_time, last_time;
	uint32_t seq;
	struct vp_packet_threads threads; /* of samples and switches */
	uint64_t lost_before, written, unwritten, lost_said;
};

struct vp_trace_writer {
	char *part; /* its folder in `directory`; NULL: `directory` is the trace itself */
	const char *directory;
	char *own_directory, *hostname, *machine;
	int64_t realtime_offset_ns;
	uint8_t uuid[16];
	VP_VEC(struct stream *) streams[VP_STREAM_CLASSES]; /* by pCPU, or NULL */
	int failure;
	struct vp_flight *flight;          /* NULL: packets go to files */
	struct vp_packer *packer;          /* NULL: they are not compressed there */
	struct vp_buffer states;           /* a packet of states in file form */
	struct vp_buffer metadata, events; /* contents of the files with these names */
};

static struct vp_error *trace_writer_publish(const char *path, const char *suffix,
					     const struct vp_buffer *text)
{
	VP_AUTO_FREE char *file = vp_format("%s%s", path, suffix);

	return vp_file_publish(file, text->bytes, text->size);
}

/* The folder's path now, to be freed. */
static char *trace_writer_path_of(const struct vp_trace_writer *writer)
{
	return writer->part ? vp_format("%s/%s", writer->directory, writer->part)
			    : vp_strdup(writer->directory);
}

static struct vp_error *write_metadata(struct vp_trace_writer *writer,
				       const struct vp_ctf_trace *trace)
{
	writer->metadata.size = 0;
	vp_schema_ctf_metadata(trace, &writer->metadata);
	VP_AUTO_FREE char *path = trace_writer_path_of(writer);
	return trace_writer_publish(path, "/metadata", &writer->metadata);
}

static struct vp_error *create(const char *directory, const char *part,
			       const struct vp_ctf_trace *trace, struct vp_trace_writer **ret)
{
	struct vp_trace_writer *writer = vp_alloc(sizeof(*writer));

	writer->directory = directory;
	writer->part = part ? vp_strdup(part) : NULL;
	VP_AUTO_FREE char *path = trace_writer_path_of(writer);
	if (mkdir(path, 0777) && errno != EEXIST) {
		int errnum = errno;
		vp_trace_writer_free(writer);
		return vp_error_errno(errnum, "cannot create directory '%s'", path);
	}
	writer->hostname = vp_strdup(trace->hostname);
	writer->machine = vp_strdup(trace->machine);
	writer->realtime_offset_ns = trace->realtime_offset_ns;
	memcpy(writer->uuid, trace->uuid, sizeof(writer->uuid));
	struct vp_error *error = write_metadata(writer, trace);
	if (error)
		vp_trace_writer_free(writer);
	else
		*ret = writer;
	return error;
}

struct vp_error *vp_trace_writer_create(const char *path, const struct vp_ctf_trace *trace,
					struct vp_trace_writer **ret)
{
	char *own = vp_strdup(path);
	struct vp_error *error = create(own, NULL, trace, ret);

	if (error)
		free(own);
	else
		(*ret)->own_directory = own;
	return error;
}

static struct vp_error *create_machine(const char *directory, const char *part, const char *machine,
				       const char *hostname, struct vp_trace_writer **ret)
{
	struct vp_clock_reading clock = vp_clock_read();
	uint8_t uuid[16];

	if (getrandom(uuid, sizeof(uuid), 0) != sizeof(uuid))
		return vp_error_errno(errno, "cannot generate a uuid");
	uuid[6] = (uuid[6] & 0x0f) | 0x40; /* RFC 4122: version 4, variant 1 */
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
	struct vp_ctf_trace trace = {
	    .uuid = uuid,
	    .hostname = hostname,
	    .machine = machine,
	    .realtime_offset_ns = (int64_t)(clock.realtime - clock.monotonic),
	};
	return create(directory, part, &trace, ret);
}

struct vp_error *vp_trace_writer_create_host(const char *directory, const char *hostname,
					     struct vp_trace_writer **ret)
{
	return create_machine(directory, "host", "host", hostname, ret);
}

struct vp_error *vp_trace_writer_create_guest(const char *directory, const char *part,
					      const char *hostname, struct vp_trace_writer **ret)
{
	return create_machine(directory, part, "guest", hostname, ret);
}

struct vp_error *vp_trace_writer_define(struct vp_trace_writer *writer,
					const vp_event_classes *classes)
{
	const struct vp_ctf_trace trace = {.uuid = writer->uuid,
					   .hostname = writer->hostname,
					   .machine = writer->machine,
					   .realtime_offset_ns = writer->realtime_offset_ns,
					   .classes = classes};

	writer->events.size = 0;
	vp_event_classes_write(classes, &writer->events);
	VP_AUTO_FREE char *path = trace_writer_path_of(writer);
	VP_TRY(trace_writer_publish(path, ".events", &writer->events));
	return write_metadata(writer, &trace);
}

struct vp_error *vp_trace_writer_keep(struct vp_trace_writer *writer, size_t bytes)
{
	return vp_flight_new(bytes, &writer->flight);
}

void vp_trace_writer_compress(struct vp_trace_writer *writer, int level)
{
	writer->packer = vp_packer_new(level);
}

uint64_t vp_trace_writer_reach(const struct vp_trace_writer *writer)
{
	return vp_flight_reach(writer->flight);
}

struct vp_error *vp_trace_writer_snapshot(const struct vp_trace_writer *writer, const char *path,
					  uint64_t from, struct vp_trace_counts *ret)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		return vp_error_errno(errno, "cannot create directory '%s'", path);
	VP_TRY(trace_writer_publish(path, "/metadata", &writer->metadata));
	if (writer->events.size)
		VP_TRY(trace_writer_publish(path, ".events", &writer->events));
	return vp_flight_write(writer->flight, path, writer->uuid, writer->packer, from, ret);
}

static void stream_free(struct stream *stream)
{
	if (!stream)
		return;
	if (stream->fd >= 0)
		close(stream->fd);
	vp_buffer_deinit(&stream->records);
	vp_packet_threads_deinit(&stream->threads);
	free(stream);
}

void vp_trace_writer_free(struct vp_trace_writer *writer)
{
	if (!writer)
		return;
	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++) {
		vp_vec_each (&writer->streams[kind], stream)
			stream_free(*stream);
		vp_vec_deinit(&writer->streams[kind]);
	}
	vp_flight_free(writer->flight);
	vp_packer_free(writer->packer);
	vp_buffer_deinit(&writer->states);
	vp_buffer_deinit(&writer->metadata);
	vp_buffer_deinit(&writer->events);
	free(writer->part);
	free(writer->own_directory);
	free(writer->hostname);
	free(writer->machine);
	free(writer);
}

/* After a failure, creation is retried with each packet. */
static int create_file(const struct vp_trace_writer *writer, struct stream *stream)
{
	VP_AUTO_FREE char *path = trace_writer_path_of(writer);

	stream->fd = vp_stream_create(path, stream->id, writer->packer != NULL);
	return stream->fd < 0 ? -errno : 0;
}

static struct stream *stream_new(struct vp_trace_writer *writer, struct vp_stream_id id)
{
	struct stream *stream = vp_alloc(sizeof(*stream));

	stream->id = id;
	stream->fd = -1;
	if (!writer->flight)
		create_file(writer, stream);
	/* Touches the memory now, to avoid page faults while the sampled machine waits. */
	memset(vp_buffer_extend(&stream->records, USUAL_PACKET), 0, USUAL_PACKET);
	stream->records.size = 0;
	return stream;
}

static struct stream *trace_writer_stream_of(struct vp_trace_writer *writer, struct vp_stream_id id)
{
	size_t index = vp_stream_class_is_per_pcpu(id.kind) ? id.pcpu : 0;

	while (writer->streams[id.kind].count <= index)
		vp_vec_push(&writer->streams[id.kind], NULL);
	struct stream **stream = &writer->streams[id.kind].at[index];
	if (!*stream)
		*stream = stream_new(writer, id);
	return *stream;
}

static bool packet_continues(struct stream *stream, const struct vp_run *run)
{
	bool samples = stream->id.kind == VP_STREAM_PCPU || stream->id.kind == VP_STREAM_GUESTS;

	return samples && vp_packet_threads_continue(&stream->threads, run->bytes, run->size);
}

static void packet_finish(const struct vp_trace_writer *writer, struct stream *stream,
			  const struct vp_run *run, struct vp_packet_header *ret)
{
	*ret = (struct vp_packet_header){
	    .timestamp_begin = run->first,
	    .timestamp_end = run->last,
	    .packet_seq_num = stream->seq,
	    .flags = packet_continues(stream, run) ? VP_PACKET_CONTINUES : 0,
	    .events_discarded = stream->lost_before + stream->unwritten,
	    .cpu_id = stream->id.pcpu,
	};
	vp_packet_finish(ret, writer->uuid, run->bytes, run->size);
}

/* Adds to memory, which never fails. */
static void packet_keep(struct vp_trace_writer *writer, struct stream *stream,
			const struct vp_run *run)
{
	const struct vp_stored_packet packet = {.stream = stream->id,
						.n = run->n,
						.first = run->first,
						.last = run->last,
						.lost = stream->lost_before,
						.size = run->size,
						.bytes = run->bytes};

	vp_flight_put(writer->flight, &packet);
	stream->is_begun = true;
	stream->written += run->n;
	stream->lost_said = stream->lost_before;
}

/* Writes the whole packet at once; after a partial write (disk full), truncates the file. */
static int packet_put(const struct vp_trace_writer *writer, struct stream *stream,
		      const struct vp_packet_header *header, const struct vp_run *run)
{
	size_t size;
	int result = stream->fd < 0 ? create_file(writer, stream) : 0;

	if (result)
		return result;
	result = vp_packet_write(stream->fd, writer->packer, header, run->bytes, &size);

	if (!result)
		stream->file_size += size;
	else if (ftruncate(stream->fd, (off_t)stream->file_size))
		return -errno;
	return result;
}

/* The run in file form. */
static struct vp_run filed(struct vp_trace_writer *writer, const struct stream *stream,
			   const struct vp_run *run)
{
	struct vp_run ret = *run;

	if (stream->id.kind != VP_STREAM_STATES || !run->size)
		return ret;
	writer->states.size = 0;
	vp_states_pack(run->bytes, run->size, &writer->states);
	ret.bytes = writer->states.bytes;
	ret.size = writer->states.size;
	return ret;
}

static void packet_write(struct vp_trace_writer *writer, struct stream *stream,
			 const struct vp_run *run)
{
	struct vp_packet_header header;

	if (writer->flight) {
		packet_keep(writer, stream, run);
		return;
	}
	const struct vp_run out = filed(writer, stream, run);
	packet_finish(writer, stream, &out, &header);
	int result = packet_put(writer, stream, &header, &out);
	if (result) {
		vp_packet_threads_deinit(&stream->threads);
		writer->failure = -result;
		stream->unwritten += run->n;
	} else {
		stream->written += run->n;
		stream->lost_said = header.events_discarded;
		stream->seq++;
		stream->is_begun = true;
	}
}

/* Writes the buffered records. */
static void write_gathered(struct vp_trace_writer *writer, struct stream *stream)
{
	struct vp_run run = {
	    .bytes = stream->records.bytes,
	    .size = stream->records.size,
	    .n = stream->n_records,
	    .first = stream->n_records ? stream->first_time : stream->last_time,
	    .last = stream->last_time,
	};

	packet_write(writer, stream, &run);
	stream->records.size = 0;
	stream->n_records = 0;
}

/* Returns space for `size` bytes in the packet, for `n` records up to time `last`. */
static char *trace_writer_gather(struct vp_trace_writer *writer, struct stream *stream, size_t size,
				 uint64_t n, uint64_t first, uint64_t last)
{
	if (stream->records.size + size > VP_RUN_MAX)
		write_gathered(writer, stream);
	if (!stream->n_records)
		stream->first_time = first;
	stream->n_records += n;
	stream->last_time = last;
	return vp_buffer_extend(&stream->records, size);
}

void vp_trace_append(struct vp_trace_writer *writer, struct vp_stream_id id, void *record)
{
	struct stream *stream = trace_writer_stream_of(writer, id);
	struct vp_record_header *header = record;
	size_t size = vp_record_length(header);

	if (header->time < stream->last_time)
		header->time = stream->last_time;
	memcpy(trace_writer_gather(writer, stream, size, 1, header->time, header->time), record,
	       size);
}

static void raise_times(struct vp_run *run, uint64_t least)
{
	for (size_t at = 0; at < run->size;) {
		struct vp_record_header *header = (void *)(run->bytes + at);
		if (header->time >= least)
			break;
		header->time = least;
		at += vp_record_length(header);
	}
	run->first = least;
	run->last = run->last > least ? run->last : least;
}

void vp_trace_append_run(struct vp_trace_writer *writer, struct vp_stream_id id, struct vp_run *run)
{
	struct stream *stream = trace_writer_stream_of(writer, id);

	if (run->first < stream->last_time)
		raise_times(run, stream->last_time);
	if (run->size < LONG_RUN) {
		memcpy(
		    trace_writer_gather(writer, stream, run->size, run->n, run->first, run->last),
		    run->bytes, run->size);
		return;
	}
	if (stream->n_records)
		write_gathered(writer, stream);
	packet_write(writer, stream, run);
	stream->last_time = run->last;
}

uint64_t vp_trace_append_records(struct vp_trace_writer *writer, struct vp_stream_id id,
				 char *records, size_t size)
{
	uint64_t least = trace_writer_stream_of(writer, id)->last_time, n_events = 0;
	struct vp_run run = {.bytes = records};

	for (size_t left = size; left;) {
		struct vp_record_header *header = (void *)(run.bytes + run.size);
		size_t length = vp_record_length(header);
		if (run.size + length > VP_RUN_MAX) {
			vp_trace_append_run(writer, id, &run);
			run = (struct vp_run){.bytes = run.bytes + run.size};
		}
		if (header->time < least)
			header->time = least;
		least = run.last = header->time;
		n_events += header->id >= VP_ID_DEFINED;
		if (!run.n++)
			run.first = least;
		run.size += length;
		left -= length;
	}
	if (run.n)
		vp_trace_append_run(writer, id, &run);
	return n_events;
}

void vp_trace_flush(struct vp_trace_writer *writer, struct vp_stream_id id, uint64_t lost)
{
	struct stream *stream = trace_writer_stream_of(writer, id);

	stream->lost_before = lost;
	if (stream->n_records || stream->lost_said != lost + stream->unwritten || !stream->is_begun)
		write_gathered(writer, stream);
}

uint64_t vp_trace_written(const struct vp_trace_writer *writer, unsigned classes)
{
	uint64_t written = 0;

	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		if (classes & VP_STREAMS(kind))
			vp_vec_each (&writer->streams[kind], stream)
				written += *stream ? (*stream)->written : 0;
	return written;
}

uint64_t vp_trace_unwritten(const struct vp_trace_writer *writer, unsigned classes)
{
	uint64_t unwritten = 0;

	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		if (classes & VP_STREAMS(kind))
			vp_vec_each (&writer->streams[kind], stream)
				unwritten += *stream ? (*stream)->unwritten : 0;
	return unwritten;
}

int vp_trace_take_failure(struct vp_trace_writer *writer)
{
	int failure = writer->failure;

	writer->failure = 0;
	return failure;
}
