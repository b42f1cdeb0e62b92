/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record table of schema/records.h as data, and text generated from it. */
#ifndef VP_SCHEMA_SCHEMA_H
#define VP_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "schema/event_class.h"
#include "schema/records.h"

struct vp_field_type {
	const char *name; /* the table's type, style and name */
	const char *style;
	const char *type;
	size_t offset; /* bytes from the start of the record, header included */
	size_t size;
	const char *meaning;
};

struct vp_record_type {
	uint32_t id;
	size_t size; /* bytes on disk, header included; 0: unknown record */
	const char *name;
	const char *meaning;
	const struct vp_field_type *fields;
	size_t n_fields;
};

/* Large enough for any record; header.id has its type. */
#define VP_RECORD_MEMBER(number, name, meaning) struct vp_##name name;
union vp_any_record {
	struct vp_record_header header;
	VP_RECORDS(VP_RECORD_MEMBER)
};

/* Size of a record type in bytes, 0: unknown; a table lookup, because it is called for every
 * record. */
static inline size_t vp_record_size(uint32_t id)
{
#define VP_RECORD_SIZE(number, record, text) [number] = sizeof(struct vp_##record),
	static const uint8_t sizes[VP_ID_MAX + 1] = {VP_RECORDS(VP_RECORD_SIZE)};
#undef VP_RECORD_SIZE

	return id <= VP_ID_MAX ? sizes[id] : 0;
}

/* Size of a record, of the schema or of a class defined in the recording. */
static inline size_t vp_record_length(const struct vp_record_header *header)
{
	return header->id < VP_ID_DEFINED ? vp_record_size(header->id)
					  : ((const struct vp_defined_record *)header)->size;
}

/* `mode`: enum vp_mode. */
static inline bool vp_mode_is_guest(uint32_t mode)
{
	return mode == VP_MODE_GUEST_KERNEL || mode == VP_MODE_GUEST_USER;
}

/* The record type with that id, or NULL. */
const struct vp_record_type *vp_record_type(uint32_t id);

/* Packet layout: this header, then records, without padding at the end. */
#define VP_PACKET_MAGIC 0xC1FC1FC1u
struct vp_packet_header {
	uint32_t magic;
	uint8_t uuid[16]; /* of the trace, as in its metadata */
	uint32_t stream_id;
	uint64_t timestamp_begin;
	uint64_t timestamp_end;
	uint64_t content_size; /* in bits, with this header */
	uint64_t packet_size;  /* in bits; equal to content_size */
	uint32_t packet_seq_num;
	uint32_t flags;            /* VP_PACKET_CONTINUES; 0 in recordings before 0.3 */
	uint64_t events_discarded; /* since the start of the stream */
	uint32_t cpu_id;
	uint32_t checksum; /* XXH64 of the packet with this field set to 0, low 32 bits */
} __attribute__((packed));

/* The packet only continues the previous one of its stream: samples, switches of vCPUs, periods and
 * call chains, in order of time, and each of its threads has a record of the same type there. */
enum { VP_PACKET_CONTINUES = 1 };

struct vp_ctf_trace {
	const uint8_t *uuid; /* 16 bytes; also the UUID of the machine's clock */
	const char *hostname;
	const char *machine;             /* "host" or "guest" */
	int64_t realtime_offset_ns;      /* CLOCK_REALTIME - CLOCK_MONOTONIC, of the host */
	const vp_event_classes *classes; /* classes defined for this trace; or NULL */
	bool as_lttng; /* for readers of LTTng kernel traces: all classes are in `classes` */
};

/* Appends CTF 1.8 metadata (TSDL) for a trace of these records. */
void vp_schema_ctf_metadata(const struct vp_ctf_trace *trace, struct vp_buffer *out);
/* Appends the chapter on records of docs/format.md. */
void vp_schema_document(struct vp_buffer *out);

#endif
