/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/flight.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "store/packet_states.h"
#include "store/packet_zstd.h"
#include "store/stream_state.h"

/* State of a stream in addition to its packets. */
struct known {
	struct vp_stream_id id;
	struct vp_stream_state state; /* from overwritten records */
	uint64_t lost;                /* before the first remaining packet */
};

struct vp_flight {
	struct vp_packet_store *store;
	VP_VEC(struct known) streams;
	uint64_t reach;
};

static struct known *known_of(struct vp_flight *flight, struct vp_stream_id id)
{
	vp_vec_each (&flight->streams, known)
		if (known->id.kind == id.kind && known->id.pcpu == id.pcpu)
			return known;
	vp_vec_push(&flight->streams, (struct known){.id = id});
	return &flight->streams.at[flight->streams.count - 1];
}

/* Records of events may start at unaligned addresses. */
static const struct vp_record_header *record_at(const struct vp_stored_packet *packet, size_t at)
{
	return (const void *)(packet->bytes + at);
}

static void see_overwritten(void *context, const struct vp_stored_packet *packet)
{
	struct vp_flight *flight = context;
	struct known *known = known_of(flight, packet->stream);

	for (size_t at = 0; at < packet->size; at += vp_record_length(record_at(packet, at)))
		vp_stream_state_see(&known->state, record_at(packet, at));
	known->lost = packet->lost;
	if (packet->n && packet->last > flight->reach)
		flight->reach = packet->last;
}

struct vp_error *vp_flight_new(size_t bytes, struct vp_flight **ret)
{
	struct vp_flight *flight = vp_alloc(sizeof(*flight));
	struct vp_error *error =
	    vp_packet_store_new(bytes, see_overwritten, flight, &flight->store);

	if (error)
		free(flight);
	else
		*ret = flight;
	return error;
}

void vp_flight_free(struct vp_flight *flight)
{
	if (!flight)
		return;
	vp_packet_store_free(flight->store);
	vp_vec_each (&flight->streams, known)
		vp_stream_state_deinit(&known->state);
	vp_vec_deinit(&flight->streams);
	free(flight);
}

void vp_flight_put(struct vp_flight *flight, const struct vp_stored_packet *packet)
{
	known_of(flight, packet->stream); /* creates its entry even if the packet is not kept */
	vp_packet_store_put(flight->store, packet);
}

uint64_t vp_flight_reach(const struct vp_flight *flight)
{
	return flight->reach;
}

/* A stream being written to a file. */
struct output {
	struct known known; /* state up to the written position */
	int fd;
	uint64_t seq, last_lost, last_time;
	uint64_t missed; /* losses reported by the last packet without records */
	bool is_begun;
};

struct writing {
	const uint8_t *uuid;
	struct vp_packer *packer;
	uint64_t from;
	VP_VEC(struct output) outputs;
	struct vp_trace_counts counts;
	int result;
};

static void write_packet(struct writing *writing, struct output *output,
			 const struct vp_stored_packet *packet)
{
	struct vp_packet_header header = {
	    .timestamp_begin = packet->first,
	    .timestamp_end = packet->last,
	    .packet_seq_num = output->seq++,
	    .events_discarded = packet->lost,
	    .cpu_id = packet->stream.pcpu,
	};
	const char *bytes = packet->bytes;
	struct vp_buffer states = {0};
	size_t size = packet->size;

	if (packet->stream.kind == VP_STREAM_STATES && size) {
		vp_states_pack(bytes, size, &states);
		bytes = states.bytes;
		size = states.size;
	}
	vp_packet_finish(&header, writing->uuid, bytes, size);
	output->last_time = packet->last;
	if (!writing->result)
		writing->result =
		    vp_packet_write(output->fd, writing->packer, &header, bytes, &size);
	vp_buffer_deinit(&states);
	writing->counts.records[packet->stream.kind] += packet->n;
}

/* Writes the state at the start: the first packet, which may be empty. */
static void begin_output(struct writing *writing, struct output *output)
{
	struct vp_buffer records = {0};
	struct vp_stored_packet packet = {
	    .stream = output->known.id, .first = writing->from, .last = writing->from};

	if (output->is_begun)
		return;
	output->is_begun = true;
	packet.n = vp_stream_state_put(&output->known.state, writing->from, &records);
	packet.bytes = records.bytes;
	packet.size = records.size;
	write_packet(writing, output, &packet);
	vp_buffer_deinit(&records);
}

static bool is_before(const struct writing *writing, struct vp_stream_id id, uint64_t time)
{
	return time < writing->from || (id.kind == VP_STREAM_ACCOUNT && time == writing->from);
}

/* Skips records before the start, except for their lasting state. */
static void cut_begin(const struct writing *writing, struct output *output,
		      struct vp_stored_packet *packet)
{
	size_t at = 0;

	while (at < packet->size) {
		const struct vp_record_header *record = record_at(packet, at);
		if (!is_before(writing, packet->stream, record->time))
			break;
		vp_stream_state_see(&output->known.state, record);
		at += vp_record_length(record);
		packet->n--;
	}
	packet->bytes += at;
	packet->size -= at;
	if (packet->size)
		packet->first = record_at(packet, 0)->time;
}

static struct output *output_of(struct writing *writing, struct vp_stream_id id)
{
	vp_vec_each (&writing->outputs, output)
		if (output->known.id.kind == id.kind && output->known.id.pcpu == id.pcpu)
			return output;
	return NULL;
}

static void put_packet(struct writing *writing, struct output *output,
		       struct vp_stored_packet packet)
{
	begin_output(writing, output);
	packet.lost -= output->known.lost;
	writing->counts.lost[packet.stream.kind] += packet.lost - output->last_lost;
	output->last_lost = packet.lost;
	write_packet(writing, output, &packet);
}

static void take_packet(void *context, const struct vp_stored_packet *stored)
{
	struct writing *writing = context;
	struct output *output = output_of(writing, stored->stream);
	struct vp_stored_packet packet = *stored;

	if (!packet.size) { /* only reports losses, which are also in the next packet */
		output->missed = packet.lost;
		return;
	}
	if (!output->is_begun)
		cut_begin(writing, output, &packet);
	if (packet.size)
		put_packet(writing, output, packet);
	else
		output->known.lost = packet.lost;
}

/* Writes losses after the last record. */
static void end_output(struct writing *writing, struct output *output)
{
	struct vp_stored_packet packet = {.stream = output->known.id, .lost = output->missed};

	begin_output(writing, output);
	packet.first = packet.last = output->last_time;
	if (output->missed > output->known.lost + output->last_lost)
		put_packet(writing, output, packet);
}

static int open_outputs(const struct vp_flight *flight, const char *path, struct writing *writing)
{
	vp_vec_each (&flight->streams, known) {
		struct output output = {
		    .known = *known,
		    .fd = vp_stream_create(path, known->id, writing->packer != NULL)};
		if (output.fd < 0)
			return -errno;
		output.known.state = vp_stream_state_copy(&known->state);
		vp_vec_push(&writing->outputs, output);
	}
	return 0;
}

static int close_outputs(struct writing *writing)
{
	vp_vec_each (&writing->outputs, output) {
		if (close(output->fd) && !writing->result)
			writing->result = -errno;
		vp_stream_state_deinit(&output->known.state);
	}
	vp_vec_deinit(&writing->outputs);
	return writing->result;
}

struct vp_error *vp_flight_write(const struct vp_flight *flight, const char *path,
				 const uint8_t uuid[16], struct vp_packer *packer, uint64_t from,
				 struct vp_trace_counts *ret)
{
	struct writing writing = {.uuid = uuid, .packer = packer, .from = from};

	writing.result = open_outputs(flight, path, &writing);
	if (!writing.result) {
		vp_packet_store_each(flight->store, take_packet, &writing);
		vp_vec_each (&writing.outputs, output)
			end_output(&writing, output);
	}
	int result = close_outputs(&writing);
	*ret = writing.counts;
	return result ? vp_error_errno(-result, "cannot write the streams of '%s'", path) : NULL;
}
