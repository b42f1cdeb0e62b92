/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes one machine's CTF trace: a `metadata` file, and a file for each stream (packet.h).
 *
 * Records gather in memory until they are flushed as one packet by one write, so that a stream
 * always ends at a packet's end, whatever happens to the process. When the disk is full the packet
 * is taken back, its records are counted as lost, and later packets are tried again.
 */
#ifndef VP_STORE_TRACE_WRITER_H
#define VP_STORE_TRACE_WRITER_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/event_class.h"
#include "schema/schema.h"
#include "store/flight.h"
#include "store/packet.h"

struct vp_trace_writer;

/* Creates directory `path` and its metadata; `trace` identifies the machine. */
struct vp_error *vp_trace_writer_create(const char *path, const struct vp_ctf_trace *trace,
					struct vp_trace_writer **ret) VP_MUST_CHECK;
/* The same of the host of the recording in `directory`, which is this machine. The name is read
 * each time that something is created in it: it may be changed where it lies, with the directory's.
 */
struct vp_error *vp_trace_writer_create_host(const char *directory, const char *hostname,
					     struct vp_trace_writer **ret) VP_MUST_CHECK;
/* The same of a VM's guest, in `directory`/PART (vp_vm_part()); times are the host's all the same.
 */
struct vp_error *vp_trace_writer_create_guest(const char *directory, const char *part,
					      const char *hostname,
					      struct vp_trace_writer **ret) VP_MUST_CHECK;
/* Defines the trace's event classes in addition to the schema's: in its metadata, and for vperf in
 * a file PATH.events next to the trace. Call before the first of their records; `classes` is only
 * read. */
struct vp_error *vp_trace_writer_define(struct vp_trace_writer *writer,
					const vp_event_classes *classes) VP_MUST_CHECK;
/* Keeps packets in `bytes` bytes of memory, overwriting the oldest, in place of files. Call before
 * the first record. Errors: too few bytes, no memory. */
struct vp_error *vp_trace_writer_keep(struct vp_trace_writer *writer, size_t bytes) VP_MUST_CHECK;
/* Compresses packets in their files (packet_zstd.h), at zstd's `level`. Call before the first
 * record. */
void vp_trace_writer_compress(struct vp_trace_writer *writer, int level);
/* From when on all that was flushed is still there; 0: nothing was overwritten yet. */
uint64_t vp_trace_writer_reach(const struct vp_trace_writer *writer);
/* Writes what was flushed, from time `from` on (flight.h), as a trace of its own to directory
 * `path`, which may be the writer's. Errors: it cannot be written. */
struct vp_error *vp_trace_writer_snapshot(const struct vp_trace_writer *writer, const char *path,
					  uint64_t from, struct vp_trace_counts *ret) VP_MUST_CHECK;
/* Closes the files; what was not flushed is dropped. */
void vp_trace_writer_free(struct vp_trace_writer *writer);

/*
 * Adds a record; in streams of events (vp_stream_class_has_defined()) also one of a defined class.
 * A header time before the stream's last time is raised to it. A full packet is flushed
 * automatically. Write errors: see vp_trace_take_failure().
 */
void vp_trace_append(struct vp_trace_writer *writer, struct vp_stream_id id, void *record);
/*
 * Adds `n` whole records, in order of time from `first` to `last`; times before the stream's last
 * time are raised to it. A long run is written at once, from where it lies; at most VP_RUN_MAX
 * bytes.
 */
struct vp_run {
	char *bytes;
	size_t size;
	uint64_t n;
	uint64_t first, last;
};
#define VP_RUN_MAX (VP_PACKET_MAX - sizeof(struct vp_packet_header))
void vp_trace_append_run(struct vp_trace_writer *writer, struct vp_stream_id id,
			 struct vp_run *run);
/* Adds whole records that lie in a row, as vp_trace_append() does with each; any size. Returns how
 * many of them are events: of a defined class. */
uint64_t vp_trace_append_records(struct vp_trace_writer *writer, struct vp_stream_id id,
				 char *records, size_t size);
/*
 * Writes what has gathered for the stream, and `lost`, the records lost before they came here since
 * the recording began. Writes nothing without changes.
 */
void vp_trace_flush(struct vp_trace_writer *writer, struct vp_stream_id id, uint64_t lost);

/* Records of the streams of these classes (VP_STREAMS()) that were written, and that are lost
 * because they could not be. */
uint64_t vp_trace_written(const struct vp_trace_writer *writer, unsigned classes);
uint64_t vp_trace_unwritten(const struct vp_trace_writer *writer, unsigned classes);
/* The errno of the last write that failed, or 0; cleared when asked. */
int vp_trace_take_failure(struct vp_trace_writer *writer);

#endif
