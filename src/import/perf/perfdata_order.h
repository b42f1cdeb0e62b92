/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorts the records of a perf.data file by time. perf marks the rounds in which it read the
 * kernel's buffers: records after a round are later than those before the previous round
 * (tools/perf/util/ordered-events.c). So only the records of two rounds are in memory, independent
 * of the file's size; all of them if it has no rounds, or the rounds are wrong.
 */
#ifndef VP_IMPORT_PERF_PERFDATA_ORDER_H
#define VP_IMPORT_PERF_PERFDATA_ORDER_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "import/perf/perfdata_record.h"

/* Offset of a record: in the concatenated files, or after them in the decompressed data. */
struct vp_perfdata_pending {
	uint64_t time, offset;
};

/* The records of one file. */
struct vp_perfdata_data {
	struct vp_slice file;
	uint64_t base; /* offset of its first byte */
	uint64_t from, to;
};

struct vp_perf_unpacker;

struct vp_perfdata_order {
	const char *source; /* for error messages */
	const struct vp_perfdata_events *events;
	VP_VEC(struct vp_perfdata_data) data;
	bool by_time_only; /* rounds are wrong: sort everything */
	/* Called with each raw record; `whole`: including data after it. Set to NULL after the
	 * first pass. */
	void (*see)(void *context, const struct vp_perfdata_record *record, struct vp_slice whole);
	void *context;
	uint64_t malformed;

	/* State: */
	size_t part;    /* index in `data` … */
	uint64_t at;    /* … and position in it */
	uint64_t known; /* latest time so far, for records without a time */
	uint64_t newest, limit;
	bool ended;
	VP_VEC(struct vp_perfdata_pending) waiting; /* the first ones are ready, sorted by time */
	size_t ready, taken;
	struct vp_perf_unpacker *unpacker;
	struct vp_buffer unpacked; /* decompressed data, from `dropped` on */
	uint64_t dropped, seen;    /* bytes no longer needed; bytes parsed */
	bool failed;               /* the rest cannot be decompressed */
};

/* Starts at the first record. */
void vp_perfdata_order_begin(struct vp_perfdata_order *order);
void vp_perfdata_order_deinit(struct vp_perfdata_order *order);
/* The next record; *has: false at the end. Its slices are valid until the next call. Errors: a
 * limit was exceeded. */
struct vp_error *vp_perfdata_order_next(struct vp_perfdata_order *order,
					struct vp_perfdata_record *ret, bool *has) VP_MUST_CHECK;

#endif
