/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file of trace-cmd (trace.dat, version 6 or 7; Documentation/trace-cmd/trace-cmd.dat.v6.5.txt,
 * trace-cmd.dat.v7.5.txt): event formats, guests, clocks, and the ring buffers of the trace and of
 * its instances. Own code; docs/evidence/trace.md has the reasons for not using libtracecmd.
 */
#ifndef VP_IMPORT_TRACEDAT_H
#define VP_IMPORT_TRACEDAT_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/ring_page.h"
#include "schema/tracepoint_format.h"

#define VP_TRACEDAT_MAGIC "\x17\x08\x44tracing"

/* At `time`, by the guest's clock, the host's was so much more. */
struct vp_tracedat_shift {
	uint64_t time;
	int64_t offset;
	uint64_t scaling, fraction_bits;
};

/* The time shifts of a CPU, by time; empty: its clock is the host's. */
struct vp_tracedat_shifts {
	VP_VEC(struct vp_tracedat_shift) of;
};

struct vp_tracedat_cpu {
	struct vp_slice pages;
	bool is_packed; /* … are compressed, in pieces of some pages each */
};

/* How a buffer's clock counts. */
enum vp_tracedat_clock {
	VP_TRACEDAT_NS,
	VP_TRACEDAT_TICKS,   /* "uptime": 10 ms */
	VP_TRACEDAT_CYCLES,  /* of a rate that the file does not have */
	VP_TRACEDAT_COUNTER, /* events: no time at all */
};

/* A set of ring buffers: the trace's own, or those of an instance. */
struct vp_tracedat_buffer {
	struct vp_slice name;  /* empty: the trace's own */
	struct vp_slice clock; /* its name; empty: not in the file */
	uint64_t offset;       /* of version 6: of its offsets */
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
	VP_VEC(struct vp_tracedat_thread) threads; /* of its CPUs */
};

struct vp_tracedat_format {
	uint32_t id;
	struct vp_slice system, text;
};

struct vp_tracedat {
	const char *source; /* for errors */
	uint32_t page_size;
	uint32_t long_size; /* of the kernel that wrote the pages: 4 or 8 */
	uint64_t id;        /* 0: none */
	bool by_trace_cmd;
	bool interpolates;
	uint32_t mult, shift;     /* ns of its clock's ticks; mult 0: they are ns */
	struct vp_slice commands; /* lines "PID COMM" */
	VP_VEC(struct vp_tracedat_format) formats;
	uint32_t cpus;
	VP_VEC(struct vp_tracedat_buffer) buffers; /* the trace's own is the first */
	VP_VEC(struct vp_tracedat_shifts) shifts;  /* by CPU */
	VP_VEC(struct vp_tracedat_guest) guests;
	/* For the requested formats. */
	struct vp_map class_of_id;
	vp_event_classes classes;
	VP_VEC(vp_tracepoint_layout) layouts;
	VP_VEC(struct vp_buffer) unpacked; /* what slices are of that are not of the file */
};

/* Slices are of `bytes`, which stay the caller's, as `source` does. Errors: it is no such file. */
struct vp_error *vp_tracedat_open(const char *source, struct vp_slice bytes,
				  struct vp_tracedat *ret) VP_MUST_CHECK;
/* The same of what perf has of it in its own files: formats only. */
struct vp_error *vp_tracedat_open_formats(const char *source, struct vp_slice bytes,
					  struct vp_tracedat *ret) VP_MUST_CHECK;
/* Whether a guest's times are its own, and trace-cmd has not measured how far they are from the
 * host's. */
bool vp_tracedat_is_unshifted(const struct vp_tracedat *file);
/* Whether the clocks of two buffers show the same time. */
bool vp_tracedat_same_clock(const struct vp_tracedat *file, size_t one, size_t other);
void vp_tracedat_close(struct vp_tracedat *file);

enum { VP_TRACEDAT_NO_CLASS = UINT32_MAX };
/* The index in `classes` of events of that number (common_type), read when it is first asked for.
 */
uint32_t vp_tracedat_class(struct vp_tracedat *file, uint32_t id);

/* Reader of a CPU's events in one buffer; zeroed, with `cpu` and `buffer`, before the first. Its
 * memory is freed after the last. */
struct vp_tracedat_walk {
	uint32_t cpu, buffer;
	size_t offset; /* of the next page, in `pages` of the CPU, or in `piece` */
	bool in_page;
	struct vp_cursor
	    pieces; /* of pages that are compressed: the next ones; once there was one */
	struct vp_buffer piece; /* … until there are no more events */
	uint32_t pieces_left;
	struct vp_ring_page page;
	uint64_t missed, malformed; /* gaps with missing events; malformed pages or events */
};

/* The next one that has a format: its class (an index in `classes`), its time in ns. */
bool vp_tracedat_next(struct vp_tracedat *file, struct vp_tracedat_walk *walk, uint32_t *class,
		      uint64_t *time, struct vp_slice *raw);

#endif
