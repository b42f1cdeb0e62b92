/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/trace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/vec.h"
#include "recording/packet.h"

/* Half a second of samples at 1 kHz. */
enum { USUAL_PACKET = 32 * 1024 };

struct stream {
	uint32_t cpu;
	int fd;
	struct vp_buffer packet; /* header and records */
	uint64_t first_time, last_time;
	uint64_t n_records; /* in the packet */
	uint64_t seq;
	uint64_t lost_before, unwritten, lost_said;
};

struct vp_trace_writer {
	char *path;
	uint8_t uuid[16];
	VP_VEC(struct stream *) streams; /* by cpu; NULL where there is none */
	uint64_t written;
	int failure;
};

struct vp_error *vp_trace_writer_create(const char *path, const struct vp_ctf_trace *trace,
					struct vp_trace_writer **ret)
{
	struct vp_buffer metadata = {0};
	VP_AUTO_FREE char *metadata_path = vp_format("%s/metadata", path);

	if (mkdir(path, 0755) && errno != EEXIST)
		return vp_error_errno(errno, "cannot create directory '%s'", path);
	vp_schema_ctf_metadata(trace, &metadata);
	struct vp_error *error = vp_file_publish(metadata_path, metadata.bytes, metadata.size);
	vp_buffer_deinit(&metadata);
	if (error)
		return error;

	struct vp_trace_writer *writer = vp_alloc(sizeof(*writer));
	writer->path = vp_strdup(path);
	memcpy(writer->uuid, trace->uuid, sizeof(writer->uuid));
	*ret = writer;
	return NULL;
}

void vp_trace_writer_free(struct vp_trace_writer *writer)
{
	if (!writer)
		return;
	vp_vec_each (&writer->streams, stream) {
		if (!*stream)
			continue;
		close((*stream)->fd);
		vp_buffer_deinit(&(*stream)->packet);
		free(*stream);
	}
	vp_vec_deinit(&writer->streams);
	free(writer->path);
	free(writer);
}

static struct stream *stream_of(struct vp_trace_writer *writer, uint32_t cpu)
{
	while (writer->streams.count <= cpu)
		vp_vec_push(&writer->streams, NULL);
	if (writer->streams.at[cpu])
		return writer->streams.at[cpu];

	VP_AUTO_FREE char *path = vp_format("%s/cpu%u", writer->path, cpu);
	struct stream *stream = vp_alloc(sizeof(*stream));
	stream->cpu = cpu;
	stream->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (stream->fd < 0)
		writer->failure = errno;
	/* Touched now, so that no page of it is missing while the sampled machine waits. */
	memset(vp_buffer_extend(&stream->packet, USUAL_PACKET), 0, USUAL_PACKET);
	stream->packet.size = 0;
	writer->streams.at[cpu] = stream;
	return stream;
}

static void packet_begin(struct stream *stream)
{
	vp_buffer_extend(&stream->packet, sizeof(struct vp_packet_header));
	stream->n_records = 0;
}

void vp_trace_append(struct vp_trace_writer *writer, uint32_t cpu, void *record)
{
	struct stream *stream = stream_of(writer, cpu);
	struct vp_record_header *header = record;
	size_t size = vp_record_type(header->id)->size;

	if (stream->packet.size + size > VP_PACKET_MAX)
		vp_trace_flush(writer, cpu, stream->lost_before);
	if (!stream->packet.size)
		packet_begin(stream);
	if (header->time < stream->last_time)
		header->time = stream->last_time;
	stream->last_time = header->time;
	if (!stream->n_records++)
		stream->first_time = header->time;
	vp_buffer_append(&stream->packet, record, size);
}

static void packet_seal(struct vp_trace_writer *writer, struct stream *stream)
{
	uint64_t bits = 8ULL * stream->packet.size;
	struct vp_packet_header header = {
	    .magic = VP_PACKET_MAGIC,
	    .timestamp_begin = stream->n_records ? stream->first_time : stream->last_time,
	    .timestamp_end = stream->last_time,
	    .content_size = bits,
	    .packet_size = bits,
	    .packet_seq_num = stream->seq,
	    .events_discarded = stream->lost_before + stream->unwritten,
	    .cpu_id = stream->cpu,
	};

	memcpy(header.uuid, writer->uuid, sizeof(header.uuid));
	memcpy(stream->packet.bytes, &header, sizeof(header));
	header.checksum = vp_packet_checksum(stream->packet.bytes, stream->packet.size);
	memcpy(stream->packet.bytes, &header, sizeof(header));
}

/* One write for the whole packet; what a full disk let through of it is cut off again. */
static int packet_write(struct stream *stream)
{
	struct stat before;

	if (fstat(stream->fd, &before))
		return -errno;
	int result = vp_fd_write_all(stream->fd, stream->packet.bytes, stream->packet.size);
	if (result && ftruncate(stream->fd, before.st_size))
		return -errno;
	return result;
}

void vp_trace_flush(struct vp_trace_writer *writer, uint32_t cpu, uint64_t lost)
{
	struct stream *stream = stream_of(writer, cpu);

	stream->lost_before = lost;
	if (!stream->packet.size) {
		if (stream->lost_said == lost + stream->unwritten)
			return;
		packet_begin(stream);
	}
	packet_seal(writer, stream);
	int result = packet_write(stream);
	if (result) {
		writer->failure = -result;
		stream->unwritten += stream->n_records;
	} else {
		writer->written += stream->n_records;
		stream->lost_said = lost + stream->unwritten;
		stream->seq++;
	}
	stream->packet.size = 0;
	stream->n_records = 0;
}

uint64_t vp_trace_written(const struct vp_trace_writer *writer)
{
	return writer->written;
}

uint64_t vp_trace_unwritten(const struct vp_trace_writer *writer)
{
	uint64_t unwritten = 0;

	vp_vec_each (&writer->streams, stream)
		unwritten += *stream ? (*stream)->unwritten : 0;
	return unwritten;
}

int vp_trace_take_failure(struct vp_trace_writer *writer)
{
	int failure = writer->failure;

	writer->failure = 0;
	return failure;
}
