/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads one machine's trace, stream by stream, in constant memory. Damage costs the packets it hit:
 * a packet whose checksum is wrong is skipped and counted, reading goes on at the next good one.
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
	uint64_t lost;       /* said by the writer: never reached the file */
	uint64_t damaged;    /* bytes skipped because they were not a good packet */
	uint64_t damaged_at; /* offset of the first such byte */
	bool cut_off;        /* the file ends inside a packet */
};

/* The unread records of the current packet; the start of every reader. */
struct vp_stream_cursor {
	const char *at, *end;
	uint64_t records; /* that were handed out */
};

/* Opens one stream file; free with vp_stream_free(). Errors: unreadable. Damage is not an error,
 * see vp_stream_health(). */
struct vp_error *vp_stream_open(const char *path, struct vp_stream_reader **ret) VP_MUST_CHECK;
void vp_stream_free(struct vp_stream_reader *stream);

/* A second reader of the same file, from its start; to be freed before the first one. */
struct vp_stream_reader *vp_stream_again(const struct vp_stream_reader *of) VP_MUST_CHECK;
/* Goes back to the file's begin; its health is as if nothing was read. */
void vp_stream_rewind(struct vp_stream_reader *stream);
/* Trusted, packets are read whose checksum is wrong: for one that another reader looks at, too. */
void vp_stream_trust(struct vp_stream_reader *stream, bool trusted);

/* For a file that is being written: what is not yet a whole packet at its end is read later, by
 * another call after the last record. */
void vp_stream_follow(struct vp_stream_reader *stream);

/* The slow path of vp_stream_next(): at the end of a packet, or at bytes that are no record. */
const struct vp_record_header *vp_stream_next_slow(struct vp_stream_reader *stream);
/*
 * The next record, or NULL at the end. It points at `vp_record_type(id)->size` bytes, packed and
 * valid until the next call; in a stream of events (vp_stream_class_has_defined()) it may be a
 * struct vp_defined_record, all of whose bytes are there.
 */
static inline const struct vp_record_header *vp_stream_next(struct vp_stream_reader *stream)
{
	struct vp_stream_cursor *cursor = (struct vp_stream_cursor *)stream;
	const struct vp_record_header *record = (const void *)cursor->at;
	/* After the last packet the window has room for a header. */
	size_t size = vp_record_size(record->id);

	if (!size || size > (size_t)(cursor->end - cursor->at))
		return vp_stream_next_slow(stream);
	cursor->at += size;
	cursor->records++;
	return record;
}
/* The last record that vp_stream_next() returned, and those after it in its packet, lie up to here.
 */
static inline const char *vp_stream_packet_end(const struct vp_stream_reader *stream)
{
	return ((const struct vp_stream_cursor *)stream)->end;
}
/* `at` is where the unread records begin now, `count` of which were read since the last one that
 * vp_stream_next() returned. */
static inline void vp_stream_skip(struct vp_stream_reader *stream, const char *at, uint64_t count)
{
	struct vp_stream_cursor *cursor = (struct vp_stream_cursor *)stream;

	cursor->at = at;
	cursor->records += count;
}
/* The next packet as a stream that is not compressed has it: vp_packet_header_size() bytes, valid
 * until the next call; NULL at the end. Not for a reader of records. */
const struct vp_packet_header *vp_stream_next_packet(struct vp_stream_reader *stream);
/*
 * Goes on with the first packet that begins in the file's last `bytes`. For a second reader of a
 * stream that wants only its end: what lies before a packet there counts as damage.
 */
void vp_stream_seek_tail(struct vp_stream_reader *stream, uint64_t bytes);
/* Bytes of the file. */
uint64_t vp_stream_size(const struct vp_stream_reader *stream);
/* The approximate time of the records at that byte of the file; false: unknown. The reading
 * position does not change. */
bool vp_stream_time_near(const struct vp_stream_reader *stream, uint64_t offset, uint64_t *time);
/* The pCPU whose stream it is, or VP_NO_PCPU. */
uint32_t vp_stream_cpu(const struct vp_stream_reader *stream);
/* Path of the file; the reader's. */
const char *vp_stream_path(const struct vp_stream_reader *stream);
/* Records read and lost so far; complete at the end of the stream. */
struct vp_stream_health vp_stream_health(const struct vp_stream_reader *stream);

enum vp_stream_class vp_stream_class(const struct vp_stream_reader *stream);

/* The event classes that the trace in directory `path` defines; none if it has none. */
struct vp_error *vp_trace_classes(const char *path, vp_event_classes *ret) VP_MUST_CHECK;
/* Opens the streams of these classes (VP_STREAMS()) of the trace in directory `path`: class after
 * class, in order of the pCPUs. */
struct vp_error *vp_trace_open(const char *path, unsigned classes,
			       vp_stream_readers *streams) VP_MUST_CHECK;
/* Frees all readers. */
void vp_trace_close(vp_stream_readers *streams);

#endif
