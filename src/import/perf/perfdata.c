/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/perfdata.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"

enum {
	/* Header records: in pipe mode, instead of a file header. */
	HEADER_ATTR = 64,
	HEADER_BUILD_ID = 67,
	EVENT_UPDATE = 78,
	HEADER_FEATURE = 80,
	ID_INDEX = 69,
	UPDATE_NAME = 2,
	/* Feature bits of data after the records. */
	FEATURE_TRACING = 1,
	FEATURE_BUILD_IDS = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_RELEASE = 4,
	FEATURE_EVENTS = 12,
	FEATURE_PMUS = 16,
	FEATURES = 256,
	HEADER_SIZE = 104,
	PIPE_HEADER_SIZE = 16,
	MIN_ATTR = 64,
	MAX_ATTRS = 65536,
	MAX_PMUS = 4096
};
/* Offsets in struct perf_event_attr; its bits. */
enum { ATTR_FLAGS = 40, FLAG_RATE = 1 << 10, FLAG_ID_ALL = 1 << 18 };

struct section {
	uint64_t offset, size;
};

static struct vp_error *perfdata_malformed(const struct vp_perfdata *file, const char *what)
{
	return vp_error_new("'%s' is damaged: %s", file->source, what);
}

static struct vp_cursor perfdata_cursor_of(const struct vp_perfdata *file, struct vp_slice slice)
{
	struct vp_cursor cursor = vp_cursor_of(slice.bytes, slice.size);

	cursor.swaps = file->events.swaps;
	return cursor;
}

static struct section perfdata_take_section(struct vp_cursor *cursor)
{
	struct section section = {.offset = vp_cursor_u64(cursor)};

	section.size = vp_cursor_u64(cursor);
	return section;
}

/* Empty if it is outside the file. */
static struct vp_slice perfdata_slice_of(const struct vp_perfdata *file, struct section section)
{
	if (section.offset > file->bytes.size || section.size > file->bytes.size - section.offset)
		return (struct vp_slice){"", 0};
	return (struct vp_slice){file->bytes.bytes + section.offset, (size_t)section.size};
}

static void take_ids(struct vp_perfdata *file, struct vp_slice ids)
{
	struct vp_cursor cursor = perfdata_cursor_of(file, ids);
	bool inserted;

	while (vp_cursor_left(&cursor) >= sizeof(uint64_t))
		vp_map_insert(&file->events.attr_of_id, vp_cursor_u64(&cursor),
			      (uint32_t)file->events.attrs.count - 1, &inserted);
}

/* On machines of the other byte order, bit fields start at the other end of each byte. */
static uint64_t take_flags(struct vp_cursor *cursor)
{
	struct vp_slice bytes = vp_cursor_bytes(cursor, sizeof(uint64_t));
	uint64_t flags = 0;

	for (size_t i = 0; i < bytes.size; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			unsigned at = cursor->swaps ? 7 - bit : bit;
			flags |= (uint64_t)((uint8_t)bytes.bytes[i] >> at & 1) << (8 * i + bit);
		}
	return flags;
}

static bool take_attr(struct vp_perfdata *file, struct vp_slice bytes)
{
	struct vp_cursor cursor = perfdata_cursor_of(file, bytes);
	struct vp_perfdata_attr attr = {.type = vp_cursor_u32(&cursor), .name = {"", 0}};

	vp_cursor_u32(&cursor); /* size */
	attr.config = vp_cursor_u64(&cursor);
	attr.period = vp_cursor_u64(&cursor);
	attr.sample_type = vp_cursor_u64(&cursor);
	attr.read_format = vp_cursor_u64(&cursor);
	uint64_t flags = take_flags(&cursor);
	attr.is_rate = flags & FLAG_RATE;
	attr.all_have_ids = flags & FLAG_ID_ALL;
	if (!vp_cursor_ok(&cursor) || file->events.attrs.count == MAX_ATTRS)
		return false;
	vp_vec_push(&file->events.attrs, attr);
	return true;
}

static struct vp_error *take_attrs(struct vp_perfdata *file, struct section section, uint64_t size)
{
	struct vp_slice attrs = perfdata_slice_of(file, section);
	struct vp_cursor cursor = perfdata_cursor_of(file, attrs);

	if (size < MIN_ATTR + sizeof(struct section) || size > attrs.size ||
	    attrs.size / size > MAX_ATTRS)
		return perfdata_malformed(file, "its list of events");
	while (vp_cursor_left(&cursor) >= size) {
		struct vp_slice attr =
		    vp_cursor_bytes(&cursor, (size_t)size - sizeof(struct section));
		struct section ids = perfdata_take_section(&cursor);
		if (!take_attr(file, attr))
			return perfdata_malformed(file, "its description of events");
		take_ids(file, perfdata_slice_of(file, ids));
	}
	return NULL;
}

/* A string: its length, then its bytes, padded with zeros. */
static struct vp_slice take_text(struct vp_cursor *cursor)
{
	struct vp_slice text = vp_cursor_bytes(cursor, vp_cursor_u32(cursor));

	return (struct vp_slice){text.bytes, text.size ? strnlen(text.bytes, text.size) : 0};
}

static struct vp_slice perfdata_text_in(const struct vp_perfdata *file, struct vp_slice section)
{
	struct vp_cursor cursor = perfdata_cursor_of(file, section);

	return take_text(&cursor);
}

static void name_event(struct vp_perfdata *file, uint64_t id, struct vp_slice name)
{
	const uint32_t *found = vp_map_find(&file->events.attr_of_id, id);

	if (found && name.size)
		file->events.attrs.at[*found].name = name;
}

/* Events in the order of the attributes: attr, name and ids of each. */
static void perfdata_take_events(struct vp_perfdata *file, struct vp_slice section)
{
	struct vp_cursor cursor = perfdata_cursor_of(file, section);
	uint32_t count = vp_cursor_u32(&cursor), size = vp_cursor_u32(&cursor);

	for (uint32_t i = 0; i < count && vp_cursor_ok(&cursor); i++) {
		vp_cursor_bytes(&cursor, size);
		uint32_t ids = vp_cursor_u32(&cursor);
		struct vp_slice name = take_text(&cursor);
		bool is_its = vp_cursor_ok(&cursor) && i < file->events.attrs.count;
		if (is_its && !ids && name.size) /* the only event has no id */
			file->events.attrs.at[i].name = name;
		for (uint32_t at = 0; at < ids && vp_cursor_left(&cursor); at++)
			name_event(file, vp_cursor_u64(&cursor), name);
	}
}

static void take_pmus(struct vp_perfdata *file, struct vp_slice section)
{
	struct vp_cursor cursor = perfdata_cursor_of(file, section);
	uint32_t count = vp_cursor_u32(&cursor);

	for (uint32_t i = 0; i < count && i < MAX_PMUS; i++) {
		struct vp_perfdata_pmu pmu = {.type = vp_cursor_u32(&cursor)};
		pmu.name = take_text(&cursor);
		if (!vp_cursor_ok(&cursor))
			return;
		vp_vec_push(&file->pmus, pmu);
	}
}

static void take_feature(struct vp_perfdata *file, uint64_t feature, struct vp_slice section)
{
	switch (feature) {
	case FEATURE_TRACING:
		file->tracing = section;
		break;
	case FEATURE_BUILD_IDS:
		file->build_ids = section;
		break;
	case FEATURE_HOSTNAME:
		file->hostname = perfdata_text_in(file, section);
		break;
	case FEATURE_RELEASE:
		file->release = perfdata_text_in(file, section);
		break;
	case FEATURE_EVENTS:
		perfdata_take_events(file, section);
		break;
	case FEATURE_PMUS:
		take_pmus(file, section);
		break;
	default:
		break;
	}
}

static void take_features(struct vp_perfdata *file, const uint64_t *features, uint64_t offset)
{
	struct vp_cursor cursor = perfdata_cursor_of(
	    file, (struct vp_slice){file->bytes.bytes + offset, file->bytes.size - (size_t)offset});

	for (unsigned feature = 0; feature < FEATURES; feature++) {
		if (!(features[feature / 64] >> feature % 64 & 1))
			continue;
		struct vp_slice section = perfdata_slice_of(file, perfdata_take_section(&cursor));
		if (!vp_cursor_ok(&cursor))
			return;
		take_feature(file, feature, section);
	}
}

/* Ids, and optionally the vCPU of each (struct id_index_entry, …_2). */
static void take_index(struct vp_perfdata *file, const struct vp_perfdata_record *record)
{
	enum { ENTRY = 32, ENTRY_2 = 16 };
	struct vp_perfdata_events *events = &file->events;
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);
	uint64_t count = vp_cursor_u64(&cursor);
	bool inserted;

	if (count > vp_cursor_left(&cursor) / (ENTRY + ENTRY_2))
		return;
	struct vp_cursor ids =
	    perfdata_cursor_of(file, vp_cursor_bytes(&cursor, (size_t)count * ENTRY));
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = vp_cursor_u64(&ids);
		vp_cursor_bytes(&ids, 2 * sizeof(uint64_t)); /* index and CPU */
		struct vp_perfdata_vcpu vcpu = {.tid = (uint32_t)vp_cursor_u64(&ids)};
		vcpu.machine = (uint32_t)vp_cursor_u64(&cursor);
		vcpu.number = (uint32_t)vp_cursor_u64(&cursor);
		if (!vcpu.machine)
			continue;
		vp_map_insert(&events->vcpu_of_id, id, (uint32_t)events->vcpus.count, &inserted);
		vp_vec_push(&events->vcpus, vcpu);
	}
}

static void count_lost(struct vp_perfdata *file, const struct vp_perfdata_record *record)
{
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);

	if (record->type == PERF_RECORD_LOST)
		vp_cursor_u64(&cursor); /* event id */
	if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES)
		file->lost += vp_cursor_u64(&cursor);
	if (record->type == VP_PERFDATA_AUXTRACE)
		file->aux += vp_cursor_u64(&cursor);
}

static void take_attr_record(struct vp_perfdata *file, struct vp_slice body)
{
	struct vp_cursor cursor = perfdata_cursor_of(file, body);

	vp_cursor_u32(&cursor); /* type */
	uint32_t size = vp_cursor_u32(&cursor);
	if (size >= MIN_ATTR && size <= body.size &&
	    take_attr(file, (struct vp_slice){body.bytes, size}))
		take_ids(file, (struct vp_slice){body.bytes + size, body.size - size});
	else
		file->order.malformed++;
}

/* Header record in pipe mode. `whole`: the record and the data after it. */
static void take_header_record(struct vp_perfdata *file, const struct vp_perfdata_record *record,
			       struct vp_slice whole)
{
	struct vp_cursor body = vp_perfdata_cursor(record, record->body);

	if (record->type == HEADER_ATTR)
		take_attr_record(file, record->body);
	if (record->type == VP_PERFDATA_HEADER_TRACING) {
		size_t size = vp_cursor_u32(&body);
		file->tracing = (struct vp_slice){record->body.bytes + record->body.size, size};
	}
	if (record->type == HEADER_BUILD_ID)
		vp_buffer_append(&file->gathered, whole.bytes, whole.size);
	if (record->type == HEADER_FEATURE) {
		uint64_t feature = vp_cursor_u64(&body);
		if (vp_cursor_ok(&body) && feature != FEATURE_BUILD_IDS)
			take_feature(file, feature, vp_cursor_rest(&body));
	}
	if (record->type == EVENT_UPDATE && vp_cursor_u64(&body) == UPDATE_NAME) {
		uint64_t id = vp_cursor_u64(&body);
		struct vp_slice name = vp_cursor_rest(&body);
		name.size = name.size ? strnlen(name.bytes, name.size) : 0;
		name_event(file, id, name);
	}
}

static bool is_inside(struct vp_slice slice, const char *bytes)
{
	return bytes >= slice.bytes && bytes < slice.bytes + slice.size;
}

/* A sample with values of an event group (perf record -e {a,b}:S) represents a sample of each. */
static void count_sample(struct vp_perfdata *file, const struct vp_perfdata_record *record)
{
	struct vp_cursor values = vp_perfdata_cursor(record, record->values);

	if (!record->values.size || !record->value_size)
		file->events.attrs.at[record->attr - file->events.attrs.at].samples++;
	else
		while (vp_cursor_left(&values) >= record->value_size) {
			struct vp_cursor value = values;
			vp_cursor_u64(&value);
			const uint32_t *found =
			    vp_map_find(&file->events.attr_of_id, vp_cursor_u64(&value));
			if (found)
				file->events.attrs.at[*found].samples++;
			vp_cursor_bytes(&values, record->value_size);
		}
}

/* First pass through all records. */
static void perfdata_survey(void *context, const struct vp_perfdata_record *record,
			    struct vp_slice whole)
{
	struct vp_perfdata *file = context;

	count_lost(file, record);
	if (record->type == PERF_RECORD_SAMPLE) {
		file->has_times &= record->has_time;
		file->has_cpus &= record->cpu != VP_PERFDATA_NO_CPU;
		count_sample(file, record);
	}
	if (record->type == ID_INDEX)
		take_index(file, record);
	/* Decompressed records are dropped before their names are read. */
	if (is_inside(file->bytes, record->body.bytes))
		take_header_record(file, record, whole);
}

/* Reads all records once: facts about the file, and whether perf's rounds are valid. */
static struct vp_error *read_through(struct vp_perfdata *file)
{
	struct vp_perfdata_order *order = &file->order;
	struct vp_perfdata_record record;
	uint64_t last = 0;
	bool has;

	file->has_times = file->has_cpus = true;
	order->see = perfdata_survey;
	order->context = file;
	vp_perfdata_order_begin(order);
	for (;;) {
		VP_TRY(vp_perfdata_order_next(order, &record, &has));
		if (!has)
			break;
		order->by_time_only |= record.time < last;
		last = record.time;
	}
	order->see = NULL;
	if (!order->by_time_only)
		return NULL;
	/* Whether all records can be queued at once. */
	for (vp_perfdata_rewind(file), has = true; has;)
		VP_TRY(vp_perfdata_order_next(order, &record, &has));
	return NULL;
}

static struct vp_error *perfdata_take_records(struct vp_perfdata *file, struct section data,
					      const struct vp_slice *files, size_t count)
{
	struct vp_perfdata_order *order = &file->order;
	uint64_t base = 0;

	for (size_t i = 0; i < count; i++) {
		vp_vec_push(&order->data,
			    ((struct vp_perfdata_data){
				.file = files[i], .base = base, .to = files[i].size}));
		base += files[i].size;
	}
	order->data.at[0].from = data.offset;
	order->data.at[0].to = data.offset + data.size;
	order->by_time_only = count > 1; /* rounds of different files are independent */
	return read_through(file);
}

/* Pipe mode (perf record -o -): event attributes come as records. */
static struct vp_error *parse_pipe(struct vp_perfdata *file, const struct vp_slice *files)
{
	const struct section records = {PIPE_HEADER_SIZE, file->bytes.size - PIPE_HEADER_SIZE};

	VP_TRY(perfdata_take_records(file, records, files, 1));
	file->build_ids = (struct vp_slice){file->gathered.bytes, file->gathered.size};
	return file->events.attrs.count ? NULL
					: perfdata_malformed(file, "its event is not described");
}

/* In the other byte order the bits may have been written as 32-bit words. */
static void take_feature_bits(const struct vp_perfdata *file, struct vp_cursor *cursor,
			      uint64_t features[FEATURES / 64])
{
	for (size_t i = 0; i < FEATURES / 64; i++)
		features[i] = vp_cursor_u64(cursor);
	if (file->events.swaps && !(features[0] >> FEATURE_HOSTNAME & 1))
		for (size_t i = 0; i < FEATURES / 64; i++)
			features[i] = features[i] << 32 | features[i] >> 32;
}

static struct vp_error *perfdata_parse(struct vp_perfdata *file, const struct vp_slice *files,
				       size_t count)
{
	struct vp_cursor start = perfdata_cursor_of(file, file->bytes), *cursor = &start;
	struct vp_slice magic = vp_cursor_bytes(cursor, sizeof(VP_PERFDATA_MAGIC) - 1);
	uint64_t features[FEATURES / 64];

	file->events.swaps = start.swaps = vp_slice_is(magic, VP_PERFDATA_MAGIC_SWAPPED);
	if (!start.swaps && !vp_slice_is(magic, VP_PERFDATA_MAGIC) &&
	    !vp_slice_is(magic, VP_PERFDATA_MAGIC_1))
		return vp_error_new("'%s' is not a perf.data file", file->source);
	uint64_t size = vp_cursor_u64(cursor);
	if (size == PIPE_HEADER_SIZE)
		return parse_pipe(file, files);
	uint64_t attr_size = vp_cursor_u64(cursor);
	struct section attrs = perfdata_take_section(cursor), data = perfdata_take_section(cursor);
	perfdata_take_section(cursor); /* event types of old versions */
	take_feature_bits(file, cursor, features);
	if (!vp_cursor_ok(cursor) || size < HEADER_SIZE || data.offset > file->bytes.size)
		return perfdata_malformed(file, "its header");
	if (!data.size) /* perf was killed: the records extend to the end of the file */
		data.size = file->bytes.size - data.offset;
	file->is_cut = data.size > file->bytes.size - data.offset;
	if (file->is_cut)
		data.size = file->bytes.size - data.offset;
	VP_TRY(take_attrs(file, attrs, attr_size));
	if (!file->events.attrs.count)
		return perfdata_malformed(file, "its event is not described");
	take_features(file, features, data.offset + data.size);
	return perfdata_take_records(file, data, files, count);
}

struct vp_error *vp_perfdata_open(const char *source, const struct vp_slice *files, size_t count,
				  struct vp_perfdata *ret)
{
	*ret = (struct vp_perfdata){.source = source, .bytes = files[0]};
	ret->order.source = source;
	ret->order.events = &ret->events;
	struct vp_error *error = perfdata_parse(ret, files, count);
	if (error)
		vp_perfdata_close(ret);
	return error;
}

void vp_perfdata_close(struct vp_perfdata *file)
{
	vp_perfdata_events_deinit(&file->events);
	vp_perfdata_order_deinit(&file->order);
	vp_vec_deinit(&file->pmus);
	vp_buffer_deinit(&file->gathered);
}

void vp_perfdata_rewind(struct vp_perfdata *file)
{
	uint64_t malformed_once = file->order.malformed;

	vp_perfdata_order_begin(&file->order);
	file->order.malformed = malformed_once;
}

bool vp_perfdata_next(struct vp_perfdata *file, struct vp_perfdata_record *ret)
{
	uint64_t malformed_once = file->order.malformed;
	bool has = false;
	struct vp_error *error = vp_perfdata_order_next(&file->order, ret, &has);

	/* The first pass has succeeded: no limit is exceeded, and nothing is counted again. */
	vp_error_free(error);
	file->order.malformed = malformed_once;
	return !error && has;
}

struct vp_build_id vp_perfdata_build_id(const struct vp_perfdata *file, const char *path)
{
	enum { HAS_SIZE = 1 << 15, USUAL_SIZE = 20 };
	struct vp_cursor cursor = perfdata_cursor_of(file, file->build_ids);

	while (vp_cursor_left(&cursor)) {
		vp_cursor_u32(&cursor); /* not a record type */
		uint16_t misc = vp_cursor_u16(&cursor), size = vp_cursor_u16(&cursor);
		struct vp_cursor entry = vp_cursor_of("", 0);
		if (size >= sizeof(struct perf_event_header)) {
			struct vp_slice bytes =
			    vp_cursor_bytes(&cursor, size - sizeof(struct perf_event_header));
			entry = vp_cursor_of(bytes.bytes, bytes.size);
		}
		vp_cursor_u32(&entry); /* pid of the machine */
		struct vp_slice id = vp_cursor_bytes(&entry, 24), name = vp_cursor_rest(&entry);
		if (!vp_cursor_ok(&cursor) || !vp_cursor_ok(&entry) || !name.size)
			break;
		name.size = strnlen(name.bytes, name.size);
		uint8_t its = misc & HAS_SIZE ? (uint8_t)id.bytes[20] : USUAL_SIZE;
		if (vp_slice_is(name, path))
			return vp_build_id_of(id.bytes, its <= USUAL_SIZE ? its : 0);
	}
	return vp_build_id_of("", 0);
}
