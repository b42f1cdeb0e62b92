/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parser for files of trace-cmd (trace.dat, version 6 or 7;
 * Documentation/trace-cmd/trace-cmd.dat.v6.5.txt, trace-cmd.dat.v7.5.txt): event formats, guests,
 * clocks, and ring buffers of the trace and its instances. Own code; docs/evidence/trace.md has the
 * reasons for not using libtracecmd.
 */
#ifndef VP_IMPORT_TRACEDAT_TRACEDAT_H
#define VP_IMPORT_TRACEDAT_TRACEDAT_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/ring_page.h"
#include "schema/tracepoint_format.h"

#define VP_TRACEDAT_MAGIC "\x17\x08\x44tracing"

/* Offset of the host's clock to the guest's at `time` of the guest's clock. */
struct vp_tracedat_shift {
	uint64_t time;
	int64_t offset;
	uint64_t scaling, fraction_bits;
};

/* Clock offsets of a CPU, sorted by time; empty: its clock is the host's. */
struct vp_tracedat_shifts {
	VP_VEC(struct vp_tracedat_shift) of;
};

struct vp_tracedat_cpu {
	struct vp_slice pages;
	bool is_packed; /* … are compressed in chunks of several pages */
};

/* Unit of a buffer's clock. */
enum vp_tracedat_clock {
	VP_TRACEDAT_NS,
	VP_TRACEDAT_TICKS,   /* "uptime": 10 ms */
	VP_TRACEDAT_CYCLES,  /* the file lacks their frequency */
	VP_TRACEDAT_COUNTER, /* a counter of events, not a time */
};

/* A set of ring buffers: the main one, or that of an instance. */
struct vp_tracedat_buffer {
	struct vp_slice name;  /* empty: the main one */
	struct vp_slice clock; /* name of the clock; empty: not in the file */
	uint64_t offset;       /* version 6: location of its offsets */
	enum vp_tracedat_clock counts;
	uint32_t page_size;
	VP_VEC(struct vp_tracedat_cpu) cpus;
};

struct vp_tracedat_thread {
	uint32_t cpu, tid;
};

struct vp_tracedat_guest {
	struct vp_slice name;
	uint64_t id;
	VP_VEC(struct vp_tracedat_thread) threads; /* threads of its CPUs */
};

struct vp_tracedat_format {
	uint32_t id;
	struct vp_slice system, text;
};

struct vp_tracedat {
	const char *source; /* for error messages */
	uint32_t page_size;
	uint32_t long_size; /* size of long in the recorded kernel: 4 or 8 */
	uint64_t id;        /* 0: none */
	bool by_trace_cmd;
	bool interpolates;
	uint32_t mult, shift;     /* conversion of clock ticks to ns; mult 0: ticks are ns */
	struct vp_slice commands; /* lines "PID COMM" */
	VP_VEC(struct vp_tracedat_format) formats;
	uint32_t cpus;
	VP_VEC(struct vp_tracedat_buffer) buffers; /* the first is the main one */
	VP_VEC(struct vp_tracedat_shifts) shifts;  /* by CPU */
	VP_VEC(struct vp_tracedat_guest) guests;
	/* For the formats used so far. */
	struct vp_map class_of_id;
	vp_event_classes classes;
	VP_VEC(vp_tracepoint_layout) layouts;
	VP_VEC(struct vp_buffer) unpacked; /* decompressed data to which slices point */
};

/* Slices point into `bytes`, which stay the caller's, like `source`. Errors: not a trace.dat
 * file. */
struct vp_error *vp_tracedat_open(const char *source, struct vp_slice bytes,
				  struct vp_tracedat *ret) VP_MUST_CHECK;
/* The same for the part of it that perf stores in its own files: only formats. */
struct vp_error *vp_tracedat_open_formats(const char *source, struct vp_slice bytes,
					  struct vp_tracedat *ret) VP_MUST_CHECK;
/* Whether a guest's times are on its own clock and trace-cmd has not measured the offset to the
 * host's. */
bool vp_tracedat_is_unshifted(const struct vp_tracedat *file);
/* Whether the clocks of two buffers have the same epoch. */
bool vp_tracedat_same_clock(const struct vp_tracedat *file, size_t one, size_t other);
void vp_tracedat_close(struct vp_tracedat *file);

enum { VP_TRACEDAT_NO_CLASS = UINT32_MAX };
/* The index in `classes` of events with that number (common_type); parsed on first use. */
uint32_t vp_tracedat_class(struct vp_tracedat *file, uint32_t id);

/* Reader of a CPU's events in one buffer. Zero-initialize it and set `cpu` and `buffer`. Its memory
 * is freed after the last event. */
struct vp_tracedat_walk {
	uint32_t cpu, buffer;
	size_t offset; /* of the next page, in the CPU's `pages` or in `piece` */
	bool in_page;
	struct vp_cursor
	    pieces; /* for compressed pages: the remaining chunks; whether there are any */
	struct vp_buffer piece; /* … until the last event */
	uint32_t pieces_left;
	struct vp_ring_page page;
	uint64_t missed, malformed; /* gaps with lost events; malformed pages or events */
};

/* The next event with a known format: index of its class in `classes`, time in ns. */
bool vp_tracedat_next(struct vp_tracedat *file, struct vp_tracedat_walk *walk, uint32_t *class,
		      uint64_t *time, struct vp_slice *raw);

#endif
