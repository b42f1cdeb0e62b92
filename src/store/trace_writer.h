/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes one machine's CTF trace: a `metadata` file, and one file per stream (packet.h).
 *
 * Records are buffered until they are flushed as a packet by a single write, so a stream always
 * ends with a complete packet, even if the process is killed. If the disk is full, the partial
 * packet is removed, its records are counted as lost, and later packets are tried again.
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
/*
 * The same for the host of the recording in `directory`, which is this machine. The string
 * `directory` is read again for each new file: it may change in place when the directory is
 * renamed.
 */
struct vp_error *vp_trace_writer_create_host(const char *directory, const char *hostname,
					     struct vp_trace_writer **ret) VP_MUST_CHECK;
/* The same for a VM's guest, in `directory`/PART (vp_vm_part()). Times are host times. */
struct vp_error *vp_trace_writer_create_guest(const char *directory, const char *part,
					      const char *hostname,
					      struct vp_trace_writer **ret) VP_MUST_CHECK;
/*
 * Defines the trace's event classes in addition to the schema's: in the metadata, and for vperf in
 * a file PATH.events next to the trace. Call it before the first of their records; `classes` is
 * only read.
 */
struct vp_error *vp_trace_writer_define(struct vp_trace_writer *writer,
					const vp_event_classes *classes) VP_MUST_CHECK;
/* Keeps packets in a memory buffer of `bytes` bytes instead of files, overwriting the oldest. Call
 * before the first record. Errors: buffer too small, no memory. */
struct vp_error *vp_trace_writer_keep(struct vp_trace_writer *writer, size_t bytes) VP_MUST_CHECK;
/* Compresses packets in files (packet_zstd.h) at that zstd level. Call before the first record. */
void vp_trace_writer_compress(struct vp_trace_writer *writer, int level);
/* Time from which all flushed records are still in memory; 0: nothing was overwritten. */
uint64_t vp_trace_writer_reach(const struct vp_trace_writer *writer);
/* Writes the flushed records from time `from` on (flight.h) as a trace to directory `path`, which
 * may be the writer's. Errors: not writable. */
struct vp_error *vp_trace_writer_snapshot(const struct vp_trace_writer *writer, const char *path,
					  uint64_t from, struct vp_trace_counts *ret) VP_MUST_CHECK;
/* Closes the files; unflushed records are dropped. */
void vp_trace_writer_free(struct vp_trace_writer *writer);

/*
 * Adds a record; in streams of events (vp_stream_class_has_defined()) also one of a defined class.
 * Its time is raised to the stream's last time if earlier. A full packet is flushed automatically.
 * Write errors: see vp_trace_take_failure().
 */
void vp_trace_append(struct vp_trace_writer *writer, struct vp_stream_id id, void *record);
/*
 * Adds a run of `n` whole records of at most VP_RUN_MAX bytes, sorted by time from `first` to
 * `last`; times before the stream's last time are raised to it. A long run is written without
 * copying.
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
/* Adds a sequence of whole records of any size, like vp_trace_append() for each. Returns the number
 * of events among them (records of a defined class). */
uint64_t vp_trace_append_records(struct vp_trace_writer *writer, struct vp_stream_id id,
				 char *records, size_t size);
/* Writes the buffered records of the stream, and `lost`, the number of records lost before they
 * reached the writer since the start. Writes nothing without changes. */
void vp_trace_flush(struct vp_trace_writer *writer, struct vp_stream_id id, uint64_t lost);

/* Number of records of the streams of these classes (VP_STREAMS()) that were written, and that were
 * lost by failed writes. */
uint64_t vp_trace_written(const struct vp_trace_writer *writer, unsigned classes);
uint64_t vp_trace_unwritten(const struct vp_trace_writer *writer, unsigned classes);
/* Returns and clears the errno of the last failed write; 0: none. */
int vp_trace_take_failure(struct vp_trace_writer *writer);

#endif
