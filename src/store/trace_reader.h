/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads one machine's trace, stream by stream, in constant memory. Damage costs only the affected
 * packets: a packet with a wrong checksum is skipped and counted, and reading continues at the next
 * valid one.
 */
#ifndef VP_STORE_TRACE_READER_H
#define VP_STORE_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/schema.h"
#include "store/packet.h"

struct vp_stream_reader;
typedef VP_VEC(struct vp_stream_reader *) vp_stream_readers;

struct vp_stream_health {
	uint64_t records;
	uint64_t lost;       /* reported by the writer: never written to the file */
	uint64_t damaged;    /* skipped bytes that are not part of a valid packet */
	uint64_t damaged_at; /* offset of the first such byte */
	bool cut_off;        /* the file ends inside a packet */
};

/* Unread records of the current packet; first member of every reader. */
struct vp_stream_cursor {
	const char *at, *end;
	uint64_t records; /* number of records returned */
	bool has_defined; /* vp_stream_class_has_defined() */
};

/* Opens a stream file; free with vp_stream_free(). Errors: unreadable. Damage is not an error, see
 * vp_stream_health(). */
struct vp_error *vp_stream_open(const char *path, struct vp_stream_reader **ret) VP_MUST_CHECK;
void vp_stream_free(struct vp_stream_reader *stream);

/* A second reader of the same file, from its start; free it before the first one. */
struct vp_stream_reader *vp_stream_again(const struct vp_stream_reader *of) VP_MUST_CHECK;
/* Returns to the start of the file and resets the health. */
void vp_stream_rewind(struct vp_stream_reader *stream);
/* With `trust`, checksums are not verified: for a file that another reader verifies. */
void vp_stream_trust(struct vp_stream_reader *stream, bool trusted);

/* For a file that is being written: an incomplete packet at its end is read by a later call. */
void vp_stream_follow(struct vp_stream_reader *stream);

/* Slow path of vp_stream_next(): end of a packet, or invalid data. */
const struct vp_record_header *vp_stream_next_slow(struct vp_stream_reader *stream);
/*
 * The next record, or NULL at the end: `vp_record_type(id)->size` bytes, packed, valid until the
 * next call. In a stream of events (vp_stream_class_has_defined()) it may be a complete struct
 * vp_defined_record.
 */
static inline const struct vp_record_header *vp_stream_next(struct vp_stream_reader *stream)
{
	struct vp_stream_cursor *cursor = (struct vp_stream_cursor *)stream;
	const struct vp_record_header *record = (const void *)cursor->at;
	/* The buffer is padded after the last packet. */
	size_t size = vp_record_size(record->id);

	if (!size || size > (size_t)(cursor->end - cursor->at))
		return vp_stream_next_slow(stream);
	cursor->at += size;
	cursor->records++;
	return record;
}
/* Like vp_stream_next() if the next record is in the current packet and earlier than `before`; else
 * NULL, and nothing is read. */
static inline const struct vp_record_header *vp_stream_next_before(struct vp_stream_reader *stream,
								   uint64_t before)
{
	struct vp_stream_cursor *cursor = (struct vp_stream_cursor *)stream;
	const struct vp_record_header *record = (const void *)cursor->at;
	size_t size = vp_record_size(record->id);

	if (cursor->has_defined && record->id >= VP_ID_DEFINED) {
		const struct vp_defined_record *defined = (const void *)record;
		size = defined->size >= sizeof(*defined) ? defined->size : 0;
	}
	if (!size || size > (size_t)(cursor->end - cursor->at) || record->time >= before)
		return NULL;
	cursor->at += size;
	cursor->records++;
	return record;
}
/* End of the records of the current packet; the last record returned by vp_stream_next() is before
 * it. */
static inline const char *vp_stream_packet_end(const struct vp_stream_reader *stream)
{
	return ((const struct vp_stream_cursor *)stream)->end;
}
/* Header of the current packet, valid as long as its records; NULL: none. The first record of a
 * stream of samples follows it. */
const struct vp_packet_header *vp_stream_packet(const struct vp_stream_reader *stream);
/* Moves the position to `at`, after `count` further records of the packet were read directly. */
static inline void vp_stream_skip(struct vp_stream_reader *stream, const char *at, uint64_t count)
{
	struct vp_stream_cursor *cursor = (struct vp_stream_cursor *)stream;

	cursor->at = at;
	cursor->records += count;
}
/* Position of the next packet in the file. */
uint64_t vp_stream_position(const struct vp_stream_reader *stream);
/* Continues with the packet at that position. */
void vp_stream_seek(struct vp_stream_reader *stream, uint64_t position);
/* After the last record of a packet: skips packets that only continue it (VP_PACKET_CONTINUES) and
 * end before `until`, all but the last one of them, by their headers alone. Returns their number.
 * The records of the packet itself stay valid until the next one is read. */
uint32_t vp_stream_skip_continuing(struct vp_stream_reader *stream, uint64_t until);
/* Counts records that another reader has read in place of this one. */
static inline void vp_stream_count(struct vp_stream_reader *stream, uint64_t count)
{
	((struct vp_stream_cursor *)stream)->records += count;
}
/* The next packet, decompressed: vp_packet_header_size() bytes, valid until the next call; NULL at
 * the end. Not to be mixed with reading records. */
const struct vp_packet_header *vp_stream_next_packet(struct vp_stream_reader *stream);
/* Continues with the first packet that starts in the last `bytes` of the file: for a second reader
 * that needs only the end. Data before that packet counts as damage. */
void vp_stream_seek_tail(struct vp_stream_reader *stream, uint64_t bytes);
/* Size of the file in bytes. */
uint64_t vp_stream_size(const struct vp_stream_reader *stream);
/* Approximate time of the records at that offset of the file; false: unknown. The reading position
 * does not change. */
bool vp_stream_time_near(const struct vp_stream_reader *stream, uint64_t offset, uint64_t *time);
/* The stream's pCPU, or VP_NO_PCPU. */
uint32_t vp_stream_cpu(const struct vp_stream_reader *stream);
/* Path of the file; owned by the reader. */
const char *vp_stream_path(const struct vp_stream_reader *stream);
/* Counts of records read and lost so far; final at the end of the stream. */
struct vp_stream_health vp_stream_health(const struct vp_stream_reader *stream);

enum vp_stream_class vp_stream_class(const struct vp_stream_reader *stream);

/* The event classes defined by the trace in directory `path`; empty if none. */
struct vp_error *vp_trace_classes(const char *path, vp_event_classes *ret) VP_MUST_CHECK;
/* Opens the streams of these classes (VP_STREAMS()) of the trace in directory `path`, sorted by
 * class and pCPU. */
struct vp_error *vp_trace_open(const char *path, unsigned classes,
			       vp_stream_readers *streams) VP_MUST_CHECK;
/* Frees all readers. */
void vp_trace_close(vp_stream_readers *streams);

#endif
