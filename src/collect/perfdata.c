/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/perfdata.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "collect/perf_unpack.h"

enum {
	/* What perf itself writes beside the kernel's records. Those of a header: in its form for
	 * pipes, instead of what a file has around its data. */
	FIRST_OF_PERF = 64,
	HEADER_ATTR = 64,
	HEADER_TRACING = 66,
	HEADER_BUILD_ID = 67,
	HEADER_FEATURE = 80,
	ID_INDEX = 69,
	AUXTRACE = 71,
	COMPRESSED = 81,
	COMPRESSED_2 = 83,
	/* Bits of what follows the data. */
	FEATURE_TRACING = 1,
	FEATURE_BUILD_IDS = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_RELEASE = 4,
	FEATURES = 256,
	HEADER_SIZE = 104,
	PIPE_HEADER_SIZE = 16,
	LEAST_ATTR = 64,
	MOST_ATTRS = 65536,
	MOST_CPUS = 8192 /* of the kernel, on x86 */
};
/* Places in struct perf_event_attr; its bits. */
enum { ATTR_FLAGS = 40, FLAG_RATE = 1 << 10, FLAG_ID_ALL = 1 << 18 };

/* So much fits beside all else into what the process that reads it may have. */
#define MOST_UNPACKED ((size_t)1 << 30)

struct section {
	uint64_t offset, size;
};

static struct vp_error *malformed(const struct vp_perfdata *file, const char *what)
{
	return vp_error_new("'%s' is damaged: %s", file->source, what);
}

static struct section take_section(struct vp_cursor *cursor)
{
	struct section section = {.offset = vp_cursor_u64(cursor)};

	section.size = vp_cursor_u64(cursor);
	return section;
}

/* Empty: it is not in the file. */
static struct vp_slice slice_of(const struct vp_perfdata *file, struct section section)
{
	if (section.offset > file->bytes.size || section.size > file->bytes.size - section.offset)
		return (struct vp_slice){"", 0};
	return (struct vp_slice){file->bytes.bytes + section.offset, (size_t)section.size};
}

/* What is there, and behind it. */
static struct vp_slice bytes_from(const struct vp_perfdata *file, uint64_t offset)
{
	uint64_t size = file->bytes.size;

	if (offset < size)
		return (struct vp_slice){file->bytes.bytes + offset, (size_t)(size - offset)};
	return (struct vp_slice){file->unpacked.bytes + (offset - size),
				 file->unpacked.size - (size_t)(offset - size)};
}

static void take_ids(struct vp_perfdata *file, struct vp_slice ids)
{
	struct vp_cursor cursor = vp_cursor_of(ids.bytes, ids.size);
	bool inserted;

	while (vp_cursor_left(&cursor) >= sizeof(uint64_t))
		vp_map_insert(&file->attr_of_id, vp_cursor_u64(&cursor),
			      (uint32_t)file->attrs.count - 1, &inserted);
}

static bool take_attr(struct vp_perfdata *file, struct vp_slice bytes)
{
	struct vp_cursor cursor = vp_cursor_of(bytes.bytes, bytes.size);
	struct vp_perfdata_attr attr = {.type = vp_cursor_u32(&cursor)};

	vp_cursor_u32(&cursor); /* its size */
	attr.config = vp_cursor_u64(&cursor);
	attr.period = vp_cursor_u64(&cursor);
	attr.sample_type = vp_cursor_u64(&cursor);
	attr.read_format = vp_cursor_u64(&cursor);
	uint64_t flags = vp_cursor_u64(&cursor);
	attr.is_rate = flags & FLAG_RATE;
	attr.all_have_ids = flags & FLAG_ID_ALL;
	if (!vp_cursor_ok(&cursor) || file->attrs.count == MOST_ATTRS)
		return false;
	vp_vec_push(&file->attrs, attr);
	return true;
}

static struct vp_error *take_attrs(struct vp_perfdata *file, struct section section, uint64_t size)
{
	struct vp_slice attrs = slice_of(file, section);
	struct vp_cursor cursor = vp_cursor_of(attrs.bytes, attrs.size);

	if (size < LEAST_ATTR + sizeof(struct section) || size > attrs.size ||
	    attrs.size / size > MOST_ATTRS)
		return malformed(file, "the events that it is of");
	while (vp_cursor_left(&cursor) >= size) {
		struct vp_slice attr =
		    vp_cursor_bytes(&cursor, (size_t)size - sizeof(struct section));
		struct section ids = take_section(&cursor);
		if (!take_attr(file, attr))
			return malformed(file, "what it says of its events");
		take_ids(file, slice_of(file, ids));
	}
	return NULL;
}

/* A text of perf's: its length, and then it with zeros behind. */
static struct vp_slice text_in(struct vp_slice section)
{
	struct vp_cursor cursor = vp_cursor_of(section.bytes, section.size);
	struct vp_slice text = vp_cursor_bytes(&cursor, vp_cursor_u32(&cursor));

	return (struct vp_slice){text.bytes, text.size ? strnlen(text.bytes, text.size) : 0};
}

static void take_feature(struct vp_perfdata *file, uint64_t feature, struct vp_slice section)
{
	if (feature == FEATURE_TRACING)
		file->tracing = section;
	if (feature == FEATURE_BUILD_IDS)
		file->build_ids = section;
	if (feature == FEATURE_HOSTNAME)
		file->hostname = text_in(section);
	if (feature == FEATURE_RELEASE)
		file->release = text_in(section);
}

static void take_features(struct vp_perfdata *file, const uint64_t *features, uint64_t offset)
{
	struct vp_cursor cursor =
	    vp_cursor_of(file->bytes.bytes + offset, file->bytes.size - (size_t)offset);

	for (unsigned feature = 0; feature < FEATURES; feature++) {
		if (!(features[feature / 64] >> feature % 64 & 1))
			continue;
		struct vp_slice section = slice_of(file, take_section(&cursor));
		if (!vp_cursor_ok(&cursor))
			return;
		take_feature(file, feature, section);
	}
}

/* Of a sample's bits those that its end, the ids behind another record, has too: the last ones. */
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

static void take_ids_of_record(const struct vp_perfdata *file, struct vp_slice body,
			       struct vp_perfdata_record *ret)
{
	const struct vp_perfdata_attr *attr = &file->attrs.at[0];
	size_t size = size_of_ids(attr->sample_type);
	struct vp_cursor cursor;

	if (!attr->all_have_ids || size > body.size)
		return;
	cursor = vp_cursor_of(body.bytes + body.size - size, size);
	if (attr->sample_type & PERF_SAMPLE_TID)
		vp_cursor_u64(&cursor);
	if (attr->sample_type & PERF_SAMPLE_TIME)
		ret->time = vp_cursor_u64(&cursor);
	if (attr->sample_type & PERF_SAMPLE_ID)
		ret->id = vp_cursor_u64(&cursor);
	skip_if(&cursor, attr->sample_type, PERF_SAMPLE_STREAM_ID);
	skip_if(&cursor, attr->sample_type, PERF_SAMPLE_CPU);
	if (attr->sample_type & PERF_SAMPLE_IDENTIFIER)
		ret->id = vp_cursor_u64(&cursor);
}

/* Which event's sample it is; NULL: nobody's. */
static const struct vp_perfdata_attr *attr_of(const struct vp_perfdata *file, struct vp_slice body,
					      uint64_t *id)
{
	uint64_t type = file->attrs.at[0].sample_type;
	const uint64_t before =
	    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	struct vp_cursor cursor = vp_cursor_of(body.bytes, body.size);

	if (type & PERF_SAMPLE_IDENTIFIER) {
		*id = vp_cursor_u64(&cursor);
	} else if (type & PERF_SAMPLE_ID) {
		vp_cursor_bytes(&cursor,
				sizeof(uint64_t) * (size_t)__builtin_popcountll(type & before));
		*id = vp_cursor_u64(&cursor);
	}
	if (file->attrs.count == 1)
		return &file->attrs.at[0];
	const uint32_t *found = vp_map_find(&file->attr_of_id, *id);
	return found ? &file->attrs.at[*found] : NULL;
}

/* Values that were read with the sample. */
static void skip_read(struct vp_cursor *cursor, uint64_t format)
{
	const uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	size_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	uint64_t count = format & PERF_FORMAT_GROUP ? vp_cursor_u64(cursor) : 1;

	vp_cursor_bytes(cursor, sizeof(uint64_t) * (size_t)__builtin_popcountll(format & times));
	if (count > vp_cursor_left(cursor) / sizeof(uint64_t))
		cursor->failed = true;
	else
		vp_cursor_bytes(cursor, (size_t)count * each * sizeof(uint64_t));
}

static struct vp_slice take_chain(struct vp_cursor *cursor)
{
	uint64_t count = vp_cursor_u64(cursor);

	if (count > vp_cursor_left(cursor) / sizeof(uint64_t)) {
		cursor->failed = true;
		return (struct vp_slice){"", 0};
	}
	return vp_cursor_bytes(cursor, (size_t)count * sizeof(uint64_t));
}

/* In the order of enum perf_event_sample_format's bits, but for the identifier. */
static bool take_sample(const struct vp_perfdata *file, struct vp_slice body,
			struct vp_perfdata_record *ret)
{
	struct vp_cursor cursor = vp_cursor_of(body.bytes, body.size);

	ret->attr = attr_of(file, body, &ret->id);
	if (!ret->attr)
		return false;
	uint64_t type = ret->attr->sample_type;
	skip_if(&cursor, type, PERF_SAMPLE_IDENTIFIER);
	ret->ip = type & PERF_SAMPLE_IP ? vp_cursor_u64(&cursor) : 0;
	if (type & PERF_SAMPLE_TID) {
		ret->pid = vp_cursor_u32(&cursor);
		ret->tid = vp_cursor_u32(&cursor);
	}
	ret->time = type & PERF_SAMPLE_TIME ? vp_cursor_u64(&cursor) : 0;
	skip_if(&cursor, type, PERF_SAMPLE_ADDR);
	skip_if(&cursor, type, PERF_SAMPLE_ID);
	skip_if(&cursor, type, PERF_SAMPLE_STREAM_ID);
	if (type & PERF_SAMPLE_CPU)
		ret->cpu = vp_cursor_u32(&cursor);
	if (type & PERF_SAMPLE_CPU && (vp_cursor_u32(&cursor) || ret->cpu >= MOST_CPUS))
		return false;
	skip_if(&cursor, type, PERF_SAMPLE_PERIOD);
	if (type & PERF_SAMPLE_READ)
		skip_read(&cursor, ret->attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		ret->chain = take_chain(&cursor);
	if (type & PERF_SAMPLE_RAW)
		ret->raw = vp_cursor_bytes(&cursor, vp_cursor_u32(&cursor));
	return vp_cursor_ok(&cursor);
}

/* The record at that offset, which is within the file or what was compressed in it. */
static bool read_record(const struct vp_perfdata *file, uint64_t offset,
			struct vp_perfdata_record *ret)
{
	struct vp_slice bytes = bytes_from(file, offset);
	struct vp_cursor cursor = vp_cursor_of(bytes.bytes, bytes.size);

	*ret =
	    (struct vp_perfdata_record){.type = vp_cursor_u32(&cursor), .cpu = VP_PERFDATA_NO_CPU};
	ret->misc = vp_cursor_u16(&cursor);
	uint16_t size = vp_cursor_u16(&cursor);
	if (size < sizeof(struct perf_event_header))
		return false;
	ret->body = vp_cursor_bytes(&cursor, size - sizeof(struct perf_event_header));
	if (!vp_cursor_ok(&cursor))
		return false;
	if (ret->type < FIRST_OF_PERF && !file->attrs.count)
		return false; /* in the form for pipes events are told first */
	bool good = ret->type != PERF_RECORD_SAMPLE || take_sample(file, ret->body, ret);
	if (ret->type < FIRST_OF_PERF && ret->type != PERF_RECORD_SAMPLE)
		take_ids_of_record(file, ret->body, ret);
	const uint32_t *vcpu = good ? vp_map_find(&file->vcpu_of_id, ret->id) : NULL;
	ret->vcpu = vcpu ? &file->vcpus.at[*vcpu] : NULL;
	return good;
}

bool vp_perfdata_at(const struct vp_perfdata *file, size_t place, struct vp_perfdata_record *ret)
{
	return read_record(file, file->records.at[place].offset, ret);
}

/* Ids, and behind them, if there is more, whose vCPU's each is (struct id_index_entry, …_2). */
static void take_index(struct vp_perfdata *file, const struct vp_perfdata_record *record)
{
	enum { ENTRY = 32, ENTRY_2 = 16 };
	struct vp_cursor cursor = vp_cursor_of(record->body.bytes, record->body.size);
	uint64_t count = vp_cursor_u64(&cursor);
	bool inserted;

	if (count > vp_cursor_left(&cursor) / (ENTRY + ENTRY_2))
		return;
	struct vp_slice entries = vp_cursor_bytes(&cursor, (size_t)count * ENTRY);
	struct vp_cursor ids = vp_cursor_of(entries.bytes, entries.size);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = vp_cursor_u64(&ids);
		vp_cursor_bytes(&ids, 2 * sizeof(uint64_t)); /* its index and CPU */
		struct vp_perfdata_vcpu vcpu = {.tid = (uint32_t)vp_cursor_u64(&ids)};
		vcpu.machine = (uint32_t)vp_cursor_u64(&cursor);
		vcpu.number = (uint32_t)vp_cursor_u64(&cursor);
		if (!vcpu.machine)
			continue;
		vp_map_insert(&file->vcpu_of_id, id, (uint32_t)file->vcpus.count, &inserted);
		vp_vec_push(&file->vcpus, vcpu);
	}
}

static void count_lost(struct vp_perfdata *file, const struct vp_perfdata_record *record)
{
	struct vp_cursor cursor = vp_cursor_of(record->body.bytes, record->body.size);

	if (record->type == PERF_RECORD_LOST)
		vp_cursor_u64(&cursor); /* the event's id */
	if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES)
		file->lost += vp_cursor_u64(&cursor);
}

/* Of a record, what is behind it that is no record itself. */
static uint64_t size_behind(uint32_t type, struct vp_cursor *body)
{
	if (type == AUXTRACE)
		return vp_cursor_u64(body);
	if (type == HEADER_TRACING) /* filled up to whole words */
		return ((uint64_t)vp_cursor_u32(body) + 7) / 8 * 8;
	return 0;
}

/* How long it is, with that; 0: there is no whole one. */
static uint64_t length_of(struct vp_slice data)
{
	struct vp_cursor cursor = vp_cursor_of(data.bytes, data.size);
	uint32_t type = vp_cursor_u32(&cursor);

	vp_cursor_u16(&cursor);
	uint16_t size = vp_cursor_u16(&cursor);
	uint64_t more = size_behind(type, &cursor);
	if (!vp_cursor_ok(&cursor) || size < sizeof(struct perf_event_header) || size > data.size ||
	    more > data.size - size)
		return 0;
	return size + more;
}

static int by_time(const void *a, const void *b)
{
	const struct vp_perfdata_place *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return (left->offset > right->offset) - (left->offset < right->offset);
}

static void take_attr_record(struct vp_perfdata *file, struct vp_slice body)
{
	struct vp_cursor cursor = vp_cursor_of(body.bytes, body.size);

	vp_cursor_u32(&cursor); /* its type */
	uint32_t size = vp_cursor_u32(&cursor);
	if (size >= LEAST_ATTR && size <= body.size &&
	    take_attr(file, (struct vp_slice){body.bytes, size}))
		take_ids(file, (struct vp_slice){body.bytes + size, body.size - size});
	else
		file->malformed++;
}

/* What a file has around its data. `behind`: the record and what is behind it. */
static void take_header_record(struct vp_perfdata *file, const struct vp_perfdata_record *record,
			       struct vp_slice behind)
{
	struct vp_cursor body = vp_cursor_of(record->body.bytes, record->body.size);

	if (record->type == HEADER_ATTR)
		take_attr_record(file, record->body);
	if (record->type == HEADER_TRACING) {
		size_t size = vp_cursor_u32(&body);
		file->tracing = (struct vp_slice){record->body.bytes + record->body.size, size};
	}
	if (record->type == HEADER_BUILD_ID)
		vp_buffer_append(&file->gathered, behind.bytes, behind.size);
	if (record->type == HEADER_FEATURE) {
		uint64_t feature = vp_cursor_u64(&body);
		if (vp_cursor_ok(&body) && feature != FEATURE_BUILD_IDS)
			take_feature(file, feature, vp_cursor_rest(&body));
	}
}

/* What is compressed: its records, but for the last one if it goes on in the next such piece. */
struct unpacking {
	struct vp_perf_unpacker *unpacker;
	size_t seen; /* of `unpacked` */
	bool failed;
};

static void take_record(struct vp_perfdata *file, const struct vp_perfdata_record *record,
			uint64_t offset)
{
	count_lost(file, record);
	if (record->type == ID_INDEX)
		take_index(file, record);
	if (record->type < FIRST_OF_PERF)
		vp_vec_push(&file->records, ((struct vp_perfdata_place){record->time, offset}));
}

static struct vp_error *unpack(struct vp_perfdata *file, const struct vp_perfdata_record *record,
			       struct unpacking *unpacking)
{
	struct vp_cursor cursor = vp_cursor_of(record->body.bytes, record->body.size);
	struct vp_slice piece = record->body;
	uint64_t size;

	if (record->type == COMPRESSED_2)
		piece = vp_cursor_bytes(&cursor, (size_t)vp_cursor_u64(&cursor));
	if (!unpacking->unpacker)
		unpacking->unpacker = vp_perf_unpacker_new();
	/* Behind a damaged piece the stream says nothing. */
	if (unpacking->failed || !vp_cursor_ok(&cursor) ||
	    !vp_perf_unpack(unpacking->unpacker, piece, MOST_UNPACKED, &file->unpacked)) {
		file->malformed += !unpacking->failed;
		unpacking->failed = true;
	}
	if (file->unpacked.size > MOST_UNPACKED)
		return vp_error_new("'%s' has more than 1 GiB compressed in it (perf record -z): "
				    "record for a shorter time",
				    file->source);
	for (; unpacking->seen < file->unpacked.size; unpacking->seen += size) {
		uint64_t offset = file->bytes.size + unpacking->seen;
		struct vp_perfdata_record inner;
		size = length_of(bytes_from(file, offset));
		if (!size)
			break;
		if (read_record(file, offset, &inner))
			take_record(file, &inner, offset);
		else
			file->malformed++;
	}
	return NULL;
}

static struct vp_error *find_records(struct vp_perfdata *file, struct section section, bool is_pipe,
				     struct unpacking *unpacking)
{
	struct vp_slice data = slice_of(file, section);
	uint64_t size;

	for (uint64_t at = 0; at < data.size; at += size) {
		struct vp_slice rest = {data.bytes + at, data.size - (size_t)at};
		struct vp_perfdata_record record;
		size = length_of(rest);
		if (!size) {
			file->malformed++; /* where the next begins is not known */
			break;
		}
		if (!read_record(file, section.offset + at, &record))
			file->malformed++;
		else if (record.type == COMPRESSED || record.type == COMPRESSED_2)
			VP_TRY(unpack(file, &record, unpacking));
		else
			take_record(file, &record, section.offset + at);
		if (is_pipe)
			take_header_record(file, &record,
					   (struct vp_slice){rest.bytes, (size_t)size});
	}
	file->malformed += unpacking->seen < file->unpacked.size;
	return NULL;
}

static struct vp_error *take_records(struct vp_perfdata *file, struct section section, bool is_pipe)
{
	struct unpacking unpacking = {0};
	struct vp_error *error = find_records(file, section, is_pipe, &unpacking);

	vp_perf_unpacker_free(unpacking.unpacker);
	if (file->records.count)
		qsort(file->records.at, file->records.count, sizeof(*file->records.at), by_time);
	return error;
}

/* Of perf record -o -: all that is told of the events is among the records. */
static struct vp_error *parse_pipe(struct vp_perfdata *file)
{
	const struct section records = {PIPE_HEADER_SIZE, file->bytes.size - PIPE_HEADER_SIZE};

	VP_TRY(take_records(file, records, true));
	file->build_ids = (struct vp_slice){file->gathered.bytes, file->gathered.size};
	return file->attrs.count ? NULL : malformed(file, "it says of no event that it is of");
}

static struct vp_error *parse(struct vp_perfdata *file, struct vp_cursor *cursor)
{
	struct vp_slice magic = vp_cursor_bytes(cursor, sizeof(VP_PERFDATA_MAGIC) - 1);
	uint64_t features[FEATURES / 64];

	if (!vp_slice_is(magic, VP_PERFDATA_MAGIC))
		return vp_error_new("'%s' is no file of perf record", file->source);
	uint64_t size = vp_cursor_u64(cursor);
	if (size == PIPE_HEADER_SIZE)
		return parse_pipe(file);
	uint64_t attr_size = vp_cursor_u64(cursor);
	struct section attrs = take_section(cursor), data = take_section(cursor);
	take_section(cursor); /* types of events, as they were once */
	for (size_t i = 0; i < VP_ARRAY_SIZE(features); i++)
		features[i] = vp_cursor_u64(cursor);
	if (!vp_cursor_ok(cursor) || size < HEADER_SIZE || data.offset > file->bytes.size)
		return malformed(file, "its header");
	if (!data.size) /* perf was killed: it is the rest, and nothing is behind it */
		data.size = file->bytes.size - data.offset;
	if (data.size > file->bytes.size - data.offset)
		return malformed(file, "it ends before its data do");
	VP_TRY(take_attrs(file, attrs, attr_size));
	take_features(file, features, data.offset + data.size);
	return take_records(file, data, false);
}

struct vp_error *vp_perfdata_open(const char *source, struct vp_slice bytes,
				  struct vp_perfdata *ret)
{
	struct vp_cursor cursor = vp_cursor_of(bytes.bytes, bytes.size);

	*ret = (struct vp_perfdata){.source = source, .bytes = bytes};
	struct vp_error *error = parse(ret, &cursor);
	if (error)
		vp_perfdata_close(ret);
	return error;
}

void vp_perfdata_close(struct vp_perfdata *file)
{
	vp_vec_deinit(&file->attrs);
	vp_map_deinit(&file->attr_of_id);
	vp_vec_deinit(&file->vcpus);
	vp_map_deinit(&file->vcpu_of_id);
	vp_vec_deinit(&file->records);
	vp_buffer_deinit(&file->unpacked);
	vp_buffer_deinit(&file->gathered);
}

struct vp_build_id vp_perfdata_build_id(const struct vp_perfdata *file, const char *path)
{
	enum { HAS_SIZE = 1 << 15, USUAL_SIZE = 20 };
	struct vp_cursor cursor = vp_cursor_of(file->build_ids.bytes, file->build_ids.size);

	while (vp_cursor_left(&cursor)) {
		vp_cursor_u32(&cursor); /* no record's type */
		uint16_t misc = vp_cursor_u16(&cursor), size = vp_cursor_u16(&cursor);
		struct vp_cursor entry = vp_cursor_of("", 0);
		if (size >= sizeof(struct perf_event_header)) {
			struct vp_slice bytes =
			    vp_cursor_bytes(&cursor, size - sizeof(struct perf_event_header));
			entry = vp_cursor_of(bytes.bytes, bytes.size);
		}
		vp_cursor_u32(&entry); /* the machine's process */
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

struct vp_slice vp_perfdata_comm(const struct vp_perfdata_record *record, uint32_t *tid)
{
	struct vp_cursor cursor = vp_cursor_of(record->body.bytes, record->body.size);

	if (record->type != PERF_RECORD_COMM)
		return (struct vp_slice){"", 0};
	vp_cursor_u32(&cursor); /* its process */
	*tid = vp_cursor_u32(&cursor);
	struct vp_slice text = vp_cursor_rest(&cursor);
	return (struct vp_slice){text.bytes, text.size ? strnlen(text.bytes, text.size) : 0};
}
