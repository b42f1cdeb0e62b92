/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads one machine's trace, stream by stream, in constant memory. Damage costs the packets it hit:
 * a packet whose checksum is wrong is skipped and counted, reading goes on at the next good one.
 */
#ifndef VP_RECORDING_TRACE_READER_H
#define VP_RECORDING_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "schema/schema.h"

struct vp_stream_reader;
typedef VP_VEC(struct vp_stream_reader *) vp_stream_readers;

struct vp_stream_health {
	uint64_t records;
	uint64_t lost;       /* said by the writer: never reached the file */
	uint64_t damaged;    /* bytes skipped because they were not a good packet */
	uint64_t damaged_at; /* offset of the first such byte */
	bool cut_off;        /* the file ends inside a packet */
};

/* Opens one stream file. */
struct vp_error *vp_stream_open(const char *path, struct vp_stream_reader **ret) VP_MUST_CHECK;
void vp_stream_free(struct vp_stream_reader *stream);

/*
 * The next record, or NULL at the end. It points at `vp_record_type(id)->size` bytes, packed and
 * valid until the next call.
 */
const struct vp_record_header *vp_stream_next(struct vp_stream_reader *stream);
/*
 * Goes on with the first packet that begins in the file's last `bytes`. For a second reader of a
 * stream that wants only its end: what lies before a packet there counts as damage.
 */
void vp_stream_seek_tail(struct vp_stream_reader *stream, uint64_t bytes);
uint32_t vp_stream_cpu(const struct vp_stream_reader *stream);
const char *vp_stream_path(const struct vp_stream_reader *stream);
const struct vp_stream_health *vp_stream_health(const struct vp_stream_reader *stream);

/* Opens every stream of the trace in directory `path`, by number of pCPU. */
struct vp_error *vp_trace_open(const char *path, vp_stream_readers *streams) VP_MUST_CHECK;
void vp_trace_close(vp_stream_readers *streams);

#endif
