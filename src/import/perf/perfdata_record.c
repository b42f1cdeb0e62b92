/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/perfdata_record.h"

#include <linux/perf_event.h>
#include <string.h>

enum { MAX_CPUS = 8192 /* Linux's maximum on x86 */ };

void vp_perfdata_events_deinit(struct vp_perfdata_events *events)
{
	vp_vec_deinit(&events->attrs);
	vp_map_deinit(&events->attr_of_id);
	vp_vec_deinit(&events->vcpus);
	vp_map_deinit(&events->vcpu_of_id);
}

static struct vp_cursor perfdata_record_cursor_of(const struct vp_perfdata_events *events,
						  const char *bytes, size_t size)
{
	struct vp_cursor cursor = vp_cursor_of(bytes, size);

	cursor.swaps = events->swaps;
	return cursor;
}

/* Size of the sample ids at the end of other records, by the sample's bits. */
static size_t size_of_ids(uint64_t sample_type)
{
	const uint64_t with = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			      PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	return sizeof(uint64_t) * (size_t)__builtin_popcountll(sample_type & with);
}

static void skip_if(struct vp_cursor *cursor, uint64_t type, uint64_t bit)
{
	if (type & bit)
		vp_cursor_u64(cursor);
}

static void take_ids_of_record(const struct vp_perfdata_events *events, struct vp_slice body,
			       struct vp_perfdata_record *ret)
{
	const struct vp_perfdata_attr *attr = &events->attrs.at[0];
	size_t size = size_of_ids(attr->sample_type);

	if (!attr->all_have_ids || size > body.size)
		return;
	struct vp_cursor cursor =
	    perfdata_record_cursor_of(events, body.bytes + body.size - size, size);
	if (attr->sample_type & PERF_SAMPLE_TID)
		vp_cursor_u64(&cursor);
	ret->has_time = attr->sample_type & PERF_SAMPLE_TIME;
	if (ret->has_time)
		ret->time = vp_cursor_u64(&cursor);
	if (attr->sample_type & PERF_SAMPLE_ID)
		ret->id = vp_cursor_u64(&cursor);
	skip_if(&cursor, attr->sample_type, PERF_SAMPLE_STREAM_ID);
	skip_if(&cursor, attr->sample_type, PERF_SAMPLE_CPU);
	if (attr->sample_type & PERF_SAMPLE_IDENTIFIER)
		ret->id = vp_cursor_u64(&cursor);
}

/* The sample's event; NULL: unknown. Without an id it is the first one, as in perf. */
static const struct vp_perfdata_attr *
perfdata_record_attr_of(const struct vp_perfdata_events *events, struct vp_slice body, uint64_t *id)
{
	uint64_t type = events->attrs.at[0].sample_type;
	const uint64_t before =
	    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	struct vp_cursor cursor = perfdata_record_cursor_of(events, body.bytes, body.size);

	if (type & PERF_SAMPLE_IDENTIFIER) {
		*id = vp_cursor_u64(&cursor);
	} else if (type & PERF_SAMPLE_ID) {
		vp_cursor_bytes(&cursor,
				sizeof(uint64_t) * (size_t)__builtin_popcountll(type & before));
		*id = vp_cursor_u64(&cursor);
	}
	if (events->attrs.count == 1 || !*id)
		return &events->attrs.at[0];
	const uint32_t *found = vp_map_find(&events->attr_of_id, *id);
	return found ? &events->attrs.at[*found] : NULL;
}

/* Values that were read with the sample. */
static void take_values(struct vp_cursor *cursor, uint64_t format, struct vp_perfdata_record *ret)
{
	const uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	const uint64_t id = PERF_FORMAT_ID, lost = PERF_FORMAT_LOST;
	size_t each = sizeof(uint64_t) * (1U + !!(format & id) + !!(format & lost));
	size_t enabled = sizeof(uint64_t) * (size_t)__builtin_popcountll(
						format & times); /* times enabled and running */

	if (format & PERF_FORMAT_GROUP) {
		uint64_t count = vp_cursor_u64(cursor);
		vp_cursor_bytes(cursor, enabled);
		if (count > vp_cursor_left(cursor) / each)
			cursor->failed = true;
		else
			ret->values = vp_cursor_bytes(cursor, (size_t)count * each);
	} else { /* enabled and running times precede the id: not needed for a single event */
		vp_cursor_bytes(cursor, each + enabled);
	}
	ret->value_size = format & id ? each : 0;
}

static struct vp_slice perfdata_record_take_chain(struct vp_cursor *cursor)
{
	uint64_t count = vp_cursor_u64(cursor);

	if (count > vp_cursor_left(cursor) / sizeof(uint64_t)) {
		cursor->failed = true;
		return (struct vp_slice){"", 0};
	}
	return vp_cursor_bytes(cursor, (size_t)count * sizeof(uint64_t));
}

static bool take_cpu(struct vp_cursor *cursor, uint32_t *ret)
{
	*ret = vp_cursor_u32(cursor);
	vp_cursor_u32(cursor); /* reserved */
	return *ret < MAX_CPUS || *ret == VP_PERFDATA_NO_CPU;
}

/* In the order of enum perf_event_sample_format's bits, after the identifier. */
static bool perfdata_record_take_sample(const struct vp_perfdata_events *events,
					struct vp_slice body, struct vp_perfdata_record *ret)
{
	struct vp_cursor cursor = perfdata_record_cursor_of(events, body.bytes, body.size);

	ret->attr = perfdata_record_attr_of(events, body, &ret->id);
	if (!ret->attr)
		return false;
	uint64_t type = ret->attr->sample_type;
	skip_if(&cursor, type, PERF_SAMPLE_IDENTIFIER);
	ret->ip = type & PERF_SAMPLE_IP ? vp_cursor_u64(&cursor) : 0;
	if (type & PERF_SAMPLE_TID) {
		ret->pid = vp_cursor_u32(&cursor);
		ret->tid = vp_cursor_u32(&cursor);
	}
	ret->has_time = type & PERF_SAMPLE_TIME;
	ret->time = ret->has_time ? vp_cursor_u64(&cursor) : 0;
	skip_if(&cursor, type, PERF_SAMPLE_ADDR);
	skip_if(&cursor, type, PERF_SAMPLE_ID);
	skip_if(&cursor, type, PERF_SAMPLE_STREAM_ID);
	if (type & PERF_SAMPLE_CPU && !take_cpu(&cursor, &ret->cpu))
		return false;
	ret->period = type & PERF_SAMPLE_PERIOD ? vp_cursor_u64(&cursor) : ret->attr->period;
	if (type & PERF_SAMPLE_READ)
		take_values(&cursor, ret->attr->read_format, ret);
	if (type & PERF_SAMPLE_CALLCHAIN)
		ret->chain = perfdata_record_take_chain(&cursor);
	if (type & PERF_SAMPLE_RAW)
		ret->raw = vp_cursor_bytes(&cursor, vp_cursor_u32(&cursor));
	return vp_cursor_ok(&cursor);
}

bool vp_perfdata_record_read(const struct vp_perfdata_events *events, struct vp_slice bytes,
			     struct vp_perfdata_record *ret)
{
	struct vp_cursor cursor = perfdata_record_cursor_of(events, bytes.bytes, bytes.size);

	*ret = (struct vp_perfdata_record){
	    .type = vp_cursor_u32(&cursor), .cpu = VP_PERFDATA_NO_CPU, .swaps = events->swaps};
	ret->misc = vp_cursor_u16(&cursor);
	uint16_t size = vp_cursor_u16(&cursor);
	if (size < sizeof(struct perf_event_header))
		return false;
	ret->body = vp_cursor_bytes(&cursor, size - sizeof(struct perf_event_header));
	if (!vp_cursor_ok(&cursor))
		return false;
	if (ret->type < VP_PERFDATA_FIRST_OF_PERF && !events->attrs.count)
		return false; /* in pipe mode event attributes come first */
	bool good =
	    ret->type != PERF_RECORD_SAMPLE || perfdata_record_take_sample(events, ret->body, ret);
	if (ret->type < VP_PERFDATA_FIRST_OF_PERF && ret->type != PERF_RECORD_SAMPLE)
		take_ids_of_record(events, ret->body, ret);
	const uint32_t *vcpu = good ? vp_map_find(&events->vcpu_of_id, ret->id) : NULL;
	ret->vcpu = vcpu ? &events->vcpus.at[*vcpu] : NULL;
	return good;
}

/* Size of the raw data after a record. */
static uint64_t perfdata_record_size_after(uint32_t type, struct vp_cursor *body)
{
	if (type == VP_PERFDATA_AUXTRACE)
		return vp_cursor_u64(body);
	if (type == VP_PERFDATA_HEADER_TRACING) /* padded to 8 bytes */
		return ((uint64_t)vp_cursor_u32(body) + 7) / 8 * 8;
	return 0;
}

uint64_t vp_perfdata_record_size(const struct vp_perfdata_events *events, struct vp_slice bytes)
{
	struct vp_cursor cursor = perfdata_record_cursor_of(events, bytes.bytes, bytes.size);
	uint32_t type = vp_cursor_u32(&cursor);

	vp_cursor_u16(&cursor);
	uint16_t size = vp_cursor_u16(&cursor);
	uint64_t more = perfdata_record_size_after(type, &cursor);
	if (!vp_cursor_ok(&cursor) || size < sizeof(struct perf_event_header) ||
	    size > bytes.size || more > bytes.size - size)
		return 0;
	return size + more;
}

struct vp_slice vp_perfdata_comm(const struct vp_perfdata_record *record, uint32_t *tid)
{
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);

	if (record->type != PERF_RECORD_COMM)
		return (struct vp_slice){"", 0};
	vp_cursor_u32(&cursor); /* pid */
	*tid = vp_cursor_u32(&cursor);
	struct vp_slice text = vp_cursor_rest(&cursor);
	return (struct vp_slice){text.bytes, text.size ? strnlen(text.bytes, text.size) : 0};
}
