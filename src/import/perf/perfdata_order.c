/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/perfdata_order.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "import/perf/perf_unpack.h"

enum { COMPRESSED = 81, COMPRESSED_2 = 83, MAX_WAITING = 1 << 26 };

/* Limits; exceeding one is an error. Both together fit into the reader's memory limit. */
#define MAX_UNPACKED ((size_t)1 << 30)

static uint64_t end_of_files(const struct vp_perfdata_order *order)
{
	const struct vp_perfdata_data *last = &order->data.at[order->data.count - 1];

	return last->base + last->file.size;
}

/* The records from the offset on. */
static struct vp_slice bytes_at(const struct vp_perfdata_order *order, uint64_t offset)
{
	uint64_t end = end_of_files(order);

	if (offset >= end) {
		size_t at = (size_t)(offset - end - order->dropped);
		return (struct vp_slice){order->unpacked.bytes + at, order->unpacked.size - at};
	}
	vp_vec_each (&order->data, data)
		if (offset - data->base < data->file.size)
			return (struct vp_slice){data->file.bytes + (offset - data->base),
						 data->file.size - (size_t)(offset - data->base)};
	return (struct vp_slice){"", 0};
}

void vp_perfdata_order_begin(struct vp_perfdata_order *order)
{
	vp_perf_unpacker_free(order->unpacker);
	order->unpacker = NULL;
	order->part = order->ready = order->taken = order->waiting.count = 0;
	order->at = order->data.count ? order->data.at[0].from : 0;
	order->known = order->newest = order->limit = 0;
	order->unpacked.size = 0;
	order->dropped = order->seen = 0;
	order->ended = order->failed = false;
}

void vp_perfdata_order_deinit(struct vp_perfdata_order *order)
{
	vp_perf_unpacker_free(order->unpacker);
	vp_vec_deinit(&order->data);
	vp_vec_deinit(&order->waiting);
	vp_buffer_deinit(&order->unpacked);
}

static int perfdata_order_by_time(const void *a, const void *b)
{
	const struct vp_perfdata_pending *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return (left->offset > right->offset) - (left->offset < right->offset);
}

/* A record without a time gets that of the record before it; a sample gets the next number,
 * which keeps samples in order. */
static uint64_t perfdata_order_time_of(struct vp_perfdata_order *order,
				       const struct vp_perfdata_record *record)
{
	if (!record->has_time && record->type == PERF_RECORD_SAMPLE)
		order->known++;
	if (!record->has_time)
		return order->known;
	order->known = record->time > order->known ? record->time : order->known;
	return record->time;
}

static struct vp_error *wait_for_round(struct vp_perfdata_order *order,
				       const struct vp_perfdata_record *record, uint64_t offset)
{
	if (record->type >= VP_PERFDATA_FIRST_OF_PERF)
		return NULL;
	if (order->waiting.count == MAX_WAITING)
		return vp_error_new("'%s' has more than %d records of unknown order: it has no "
				    "FINISHED_ROUND records of perf",
				    order->source, MAX_WAITING);
	const struct vp_perfdata_pending pending = {perfdata_order_time_of(order, record), offset};
	order->newest = pending.time > order->newest ? pending.time : order->newest;
	vp_vec_push(&order->waiting, pending);
	return NULL;
}

/* The decompressed records, except the last one if it continues in the next chunk. */
static struct vp_error *take_unpacked(struct vp_perfdata_order *order)
{
	uint64_t size;

	for (; order->seen < order->dropped + order->unpacked.size; order->seen += size) {
		uint64_t offset = end_of_files(order) + order->seen;
		struct vp_perfdata_record inner;
		struct vp_slice bytes = bytes_at(order, offset);
		size = vp_perfdata_record_size(order->events, bytes);
		if (!size)
			break;
		if (!vp_perfdata_record_read(order->events, bytes, &inner)) {
			order->malformed++;
			continue;
		}
		if (order->see)
			order->see(order->context, &inner,
				   (struct vp_slice){bytes.bytes, (size_t)size});
		VP_TRY(wait_for_round(order, &inner, offset));
	}
	return NULL;
}

static struct vp_error *perfdata_order_unpack(struct vp_perfdata_order *order,
					      const struct vp_perfdata_record *record)
{
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);
	struct vp_slice piece = record->body;

	if (record->type == COMPRESSED_2)
		piece = vp_cursor_bytes(&cursor, (size_t)vp_cursor_u64(&cursor));
	if (!order->unpacker)
		order->unpacker = vp_perf_unpacker_new();
	/* After a damaged chunk the compressed stream is unusable. */
	if (order->failed || !vp_cursor_ok(&cursor) ||
	    !vp_perf_unpack(order->unpacker, piece, MAX_UNPACKED, &order->unpacked)) {
		order->malformed += !order->failed;
		order->failed = true;
	}
	if (order->unpacked.size > MAX_UNPACKED)
		return vp_error_new("'%s' has more than 1 GiB of compressed records (perf record "
				    "-z) of unknown order",
				    order->source);
	return take_unpacked(order);
}

/* A round's records are ready up to the newest time of the previous round. */
static void end_round(struct vp_perfdata_order *order, bool is_last)
{
	if (order->waiting.count)
		qsort(order->waiting.at, order->waiting.count, sizeof(*order->waiting.at),
		      perfdata_order_by_time);
	order->ready = order->waiting.count;
	while (!is_last && order->ready && order->waiting.at[order->ready - 1].time > order->limit)
		order->ready--;
	order->limit = order->newest;
}

/* Reads a record of the file. *round: a round has ended. */
static struct vp_error *read_one(struct vp_perfdata_order *order, bool *round)
{
	const struct vp_perfdata_data *data = &order->data.at[order->part];
	struct vp_slice rest = {data->file.bytes + order->at, (size_t)(data->to - order->at)};
	uint64_t offset = data->base + order->at;
	struct vp_perfdata_record record;

	uint64_t size = vp_perfdata_record_size(order->events, rest);
	if (!size) {
		order->malformed++; /* the start of the next record is unknown */
		order->at = data->to;
		return NULL;
	}
	order->at += size;
	if (!vp_perfdata_record_read(order->events, rest, &record)) {
		order->malformed++;
		return NULL;
	}
	if (order->see)
		order->see(order->context, &record, (struct vp_slice){rest.bytes, (size_t)size});
	*round = record.type == VP_PERFDATA_FINISHED_ROUND;
	return record.type == COMPRESSED || record.type == COMPRESSED_2
		   ? perfdata_order_unpack(order, &record)
		   : wait_for_round(order, &record, offset);
}

/* Drops records that were passed on. */
static void drop_taken(struct vp_perfdata_order *order)
{
	size_t left = order->waiting.count - order->ready;
	uint64_t end = end_of_files(order), needed = order->seen;

	memmove(order->waiting.at, order->waiting.at + order->ready,
		left * sizeof(*order->waiting.at));
	order->waiting.count = left;
	order->ready = order->taken = 0;
	vp_vec_each (&order->waiting, pending)
		if (pending->offset >= end && pending->offset - end < needed)
			needed = pending->offset - end;
	size_t unused = (size_t)(needed - order->dropped);
	if (!unused)
		return;
	memmove(order->unpacked.bytes, order->unpacked.bytes + unused,
		order->unpacked.size - unused);
	order->unpacked.size -= unused;
	order->dropped = needed;
}

static struct vp_error *read_round(struct vp_perfdata_order *order)
{
	if (order->ready)
		drop_taken(order);
	for (;;) {
		bool round = false;
		while (order->at >= order->data.at[order->part].to) {
			if (++order->part == order->data.count) {
				order->ended = true;
				order->malformed +=
				    order->seen < order->dropped + order->unpacked.size;
				end_round(order, true);
				return NULL;
			}
			order->at = order->data.at[order->part].from;
		}
		VP_TRY(read_one(order, &round));
		if (round && !order->by_time_only) {
			end_round(order, false);
			return NULL;
		}
	}
}

struct vp_error *vp_perfdata_order_next(struct vp_perfdata_order *order,
					struct vp_perfdata_record *ret, bool *has)
{
	for (;;) {
		while (order->taken == order->ready && !order->ended)
			VP_TRY(read_round(order));
		*has = order->taken < order->ready;
		if (!*has)
			return NULL;
		const struct vp_perfdata_pending *pending = &order->waiting.at[order->taken++];
		/* It was parsed before; meanwhile another event may have been added. */
		if (!vp_perfdata_record_read(order->events, bytes_at(order, pending->offset), ret))
			continue;
		ret->time = pending->time;
		return NULL;
	}
}
