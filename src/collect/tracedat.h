/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file of trace-cmd (trace.dat, version 6 or 7; Documentation/trace-cmd/trace-cmd.dat.v6.5.txt,
 * trace-cmd.dat.v7.5.txt): the formats of its events, what it says of its guests and its clock, its
 * CPUs' ring buffers. Own code rather than libtracecmd: formats and pages are read as those of
 * agents are, within bounds.
 */
#ifndef VP_COLLECT_TRACEDAT_H
#define VP_COLLECT_TRACEDAT_H

#include "base/map.h"
#include "collect/ring_page.h"
#include "collect/tracepoint_format.h"

#define VP_TRACEDAT_MAGIC "\x17\x08\x44tracing"

/* At `time`, by the guest's clock, the host's was so much more. */
struct vp_tracedat_shift {
	uint64_t time;
	int64_t offset;
	uint64_t scaling, fraction_bits;
};

struct vp_tracedat_cpu {
	struct vp_slice pages;
	bool is_packed; /* … are compressed, in pieces of some pages each */
	VP_VEC(struct vp_tracedat_shift) shifts; /* by time; empty: its clock is the host's */
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
	uint64_t id; /* 0: it has none */
	bool by_trace_cmd;
	bool interpolates;
	uint32_t mult, shift;     /* ns of its clock's ticks; mult 0: they are ns */
	struct vp_slice commands; /* lines "PID COMM" */
	VP_VEC(struct vp_tracedat_format) formats;
	VP_VEC(struct vp_tracedat_cpu) cpus;
	VP_VEC(struct vp_tracedat_guest) guests;
	/* Of the formats that were asked for. */
	struct vp_map class_of_id;
	vp_event_classes classes;
	VP_VEC(vp_tracepoint_places) places;
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
void vp_tracedat_close(struct vp_tracedat *file);

enum { VP_TRACEDAT_NO_CLASS = UINT32_MAX };
/* The place in `classes` of events of that number (common_type), read when it is first asked for.
 */
uint32_t vp_tracedat_class(struct vp_tracedat *file, uint32_t id);

/* The events of a CPU; zeroed, with `cpu`, before the first. What it holds is freed behind the
 * last. */
struct vp_tracedat_walk {
	uint32_t cpu;
	size_t offset; /* of the next page, in `pages` of the CPU, or in `piece` */
	bool in_page;
	struct vp_cursor
	    pieces; /* of pages that are compressed: the next ones; once there was one */
	struct vp_buffer piece; /* … until there are no more events */
	uint32_t pieces_left;
	struct vp_ring_page page;
	uint64_t missed,
	    malformed; /* places where events are missing; pages, or events, that are none */
};

/* The next one that has a format: its class (a place in `classes`), its time in ns. */
bool vp_tracedat_next(struct vp_tracedat *file, struct vp_tracedat_walk *walk, uint32_t *class,
		      uint64_t *time, struct vp_slice *raw);

#endif
