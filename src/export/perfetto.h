/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes packets of a Perfetto trace, including samples (protos/perfetto/trace/). */
#ifndef VP_EXPORT_PERFETTO_H
#define VP_EXPORT_PERFETTO_H

#include "analyze/common/key_set.h"
#include "analyze/report/export.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "base/map.h"
#include "export/protobuf.h"

/* Field numbers, by message. */
enum {
	TRACE_PACKET = 1,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PARENT = 5,
	TRACK_CHILD_ORDERING = 11,
	TRACK_RANK = 12,
	TRACK_EXPLICIT = 3, /* value of the ordering */
	EVENT_NOTE = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_FLOW = 47,
	EVENT_BEGIN = 1, /* values of the type, up to EVENT_INSTANT */
	EVENT_END = 2,
	EVENT_INSTANT = 3,
	NOTE_STRING = 6,
	NOTE_NAME = 10
};

struct vp_perfetto_packets {
	struct vp_buffer packet;
	bool begun; /* a packet was written */
};

void vp_perfetto_packets_deinit(struct vp_perfetto_packets *packets);
/* Writes a packet with that message in it; `time` may be NULL. */
void vp_perfetto_put(struct vp_perfetto_packets *packets, uint32_t field, const uint64_t *time,
		     const struct vp_buffer *message, struct vp_buffer *out);

/* Writes each stack once, and then refers to it by number. */
struct vp_perfetto_samples {
	struct vp_perfetto_packets *packets;
	struct vp_key_set names, frames; /* keys: text and its kind; name and mapping */
	struct vp_map mappings;          /* module → number, from 1 */
	struct vp_intern stacks;
	struct vp_buffer interned, message, line, key;
};

void vp_perfetto_samples_init(struct vp_perfetto_samples *samples,
			      struct vp_perfetto_packets *packets);
void vp_perfetto_samples_deinit(struct vp_perfetto_samples *samples);
void vp_perfetto_sample(struct vp_perfetto_samples *samples, const struct vp_export *export,
			const struct vp_sample *sample);

#endif
