/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a perf.data file in order of time. perf marks the rounds in which it emptied the
 * kernel's buffers: what comes after a round is later than what came before the round before it
 * (tools/perf/util/ordered-events.c). So memory is needed for the records of two rounds only,
 * whatever the size of the file; for all of them if it has no rounds, or they do not hold.
 */
#ifndef VP_IMPORT_PERFDATA_ORDER_H
#define VP_IMPORT_PERFDATA_ORDER_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "import/perfdata_record.h"

/* A record's offset: in the files, one after another, or after them in what was compressed. */
struct vp_perfdata_pending {
	uint64_t time, offset;
};

/* Where records are in one of the files. */
struct vp_perfdata_data {
	struct vp_slice file;
	uint64_t base; /* the offset of its first byte */
	uint64_t from, to;
};

struct vp_perf_unpacker;

struct vp_perfdata_order {
	const char *source; /* for errors */
	const struct vp_perfdata_events *events;
	VP_VEC(struct vp_perfdata_data) data;
	bool by_time_only; /* rounds do not hold */
	/* Called with each record as it lies in the files; `whole`: with what follows it. NULL
	 * after the first time. */
	void (*see)(void *context, const struct vp_perfdata_record *record, struct vp_slice whole);
	void *context;
	uint64_t malformed;

	/* State: */
	size_t part;    /* of `data` … */
	uint64_t at;    /* … and in it */
	uint64_t known; /* the latest time so far, for records without one */
	uint64_t newest, limit;
	bool ended;
	VP_VEC(struct vp_perfdata_pending) waiting; /* the first are ready, by time */
	size_t ready, taken;
	struct vp_perf_unpacker *unpacker;
	struct vp_buffer unpacked; /* what was compressed, from `dropped` on */
	uint64_t dropped, seen;    /* bytes of it that are not needed any more; that are parsed */
	bool failed;               /* the rest of it is not known */
};

/* To the first record. */
void vp_perfdata_order_begin(struct vp_perfdata_order *order);
void vp_perfdata_order_deinit(struct vp_perfdata_order *order);
/* The next record; *has is false at the end. Its slices are good until the next call. Errors: a
 * limit was hit. */
struct vp_error *vp_perfdata_order_next(struct vp_perfdata_order *order,
					struct vp_perfdata_record *ret, bool *has) VP_MUST_CHECK;

#endif
