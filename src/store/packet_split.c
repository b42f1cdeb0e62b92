/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_split.h"

#include <string.h>

#include "base/macros.h"
#include "schema/records.h"
#include "schema/schema.h"

enum {
	TIME = sizeof(uint64_t),
	HEADER = sizeof(struct vp_record_header),
	USUAL_REST = sizeof(struct vp_guest_sample) - TIME, /* of the largest sample */
	BATCH = 256                                         /* records joined at once */
};

/* Bytes for the largest of several numbers; `bits`: OR of all. */
static uint8_t bytes_of(uint64_t bits)
{
	uint8_t bytes = 0;

	for (; bits; bits >>= 8)
		bytes++;
	return bytes;
}

/* Writes the lowest bytes of all numbers, then the next bytes, and so on; returns the end. */
static char *put_planes(const uint64_t *numbers, struct vp_split split, char *to)
{
	for (uint32_t byte = 0; byte < split.bytes; byte++)
		for (uint32_t i = 0; i < split.count; i++)
			*to++ = (char)(numbers[i] >> (8 * byte));
	return to;
}

/* The splitter's templates, indices and addresses of the records. False: they have too many
 * templates. */
static bool find_templates(struct vp_splitter *splitter, const char *records, size_t size)
{
	vp_templates_clear(&splitter->templates);
	for (size_t at = 0, i = 0; at < size; i++) {
		size_t length = TIME + vp_record_rest_size(records + at + TIME, size - at - TIME);
		if (!vp_templates_find(&splitter->templates, records + at, length,
				       &splitter->indices[i], &splitter->addresses[i]))
			return false;
		at += length;
	}
	return true;
}

static bool is_sample(const char *record)
{
	struct vp_record_header header;

	memcpy(&header, record, sizeof(header));
	return header.id == VP_ID_host_sample || header.id == VP_ID_vcpu_sample ||
	       header.id == VP_ID_guest_sample;
}

/* Replaces records that are mostly samples by their templates if that is smaller. Events compress
 * better as they are. */
static void use_templates(struct vp_splitter *splitter, const char *records, size_t size,
			  uint32_t samples, struct vp_split *split)
{
	size_t rests = 0;

	if (2 * samples < split->count || !find_templates(splitter, records, size))
		return;
	for (uint32_t i = 0; i < splitter->templates.count; i++)
		rests += splitter->templates.about[i].size - TIME;
	if (rests + split->count * (1 + VP_ADDRESS_BYTES + (size_t)split->bytes) >= splitter->size)
		return;
	split->templates = (uint16_t)splitter->templates.count;
	char *to = vp_templates_put(&splitter->templates, splitter->bytes);
	memcpy(to, splitter->indices, split->count);
	to += split->count;
	for (uint32_t byte = 0; byte < VP_ADDRESS_BYTES; byte++)
		for (uint32_t i = 0; i < split->count; i++)
			*to++ = (char)(splitter->addresses[i] >> (8 * byte));
	to = put_planes(splitter->differences, *split, to);
	splitter->size = (size_t)(to - splitter->bytes);
}

struct vp_split vp_records_split(struct vp_splitter *splitter, const char *records, size_t size,
				 uint64_t begin)
{
	struct vp_split split = {.count = 0};
	char *to = splitter->bytes;
	uint64_t time, bits = 0;
	uint32_t samples = 0;

	for (size_t at = 0; at < size;) {
		size_t left = size - at;
		size_t rest =
		    left < HEADER ? 0 : vp_record_rest_size(records + at + TIME, left - TIME);
		if (!rest)
			return (struct vp_split){.count = 0};
		memcpy(&time, records + at, TIME);
		memcpy(to, records + at + TIME, rest);
		splitter->differences[split.count++] = time - begin;
		bits |= time - begin;
		samples += is_sample(records + at);
		begin = time;
		to += rest;
		at += TIME + rest;
	}
	split.bytes = bytes_of(bits);
	splitter->size = (size_t)(put_planes(splitter->differences, split, to) - splitter->bytes);
	use_templates(splitter, records, size, samples, &split);
	return split;
}

/* Copies at least `size` of the `left` bytes. A copy of constant size is faster. */
static VP_INLINE void copy_rest(char *to, const char *from, size_t size, size_t left)
{
	if (VP_RARELY(size > USUAL_REST || left < USUAL_REST))
		memcpy(to, from, size);
	else
		memcpy(to, from, USUAL_REST);
}

/* Joins records that have no templates, for a constant number of bytes per difference. */
static VP_INLINE bool join(struct vp_split split, uint32_t bytes, const char *from, uint64_t begin,
			   char *records, size_t size)
{
	const char *differences = from + size - (size_t)split.count * TIME;
	char *to = records, *end = records + size;

	for (uint32_t i = 0; i < split.count; i++) {
		size_t left = (size_t)(differences - from), rest = vp_record_rest_size(from, left);
		if (!rest)
			return false;
		for (uint32_t byte = 0; byte < bytes; byte++)
			begin += (uint64_t)(uint8_t)differences[byte * (size_t)split.count + i]
				 << (8 * byte);
		memcpy(to, &begin, TIME);
		/* All that is left of the records also fits into the rest of `records`. */
		copy_rest(to + TIME, from, rest, left);
		from += rest;
		to += TIME + rest;
	}
	return to == end;
}

static bool join_records(struct vp_split split, const char *from, uint64_t begin, char *records,
			 size_t size)
{
	switch (split.bytes) {
	case 2:
		return join(split, 2, from, begin, records, size);
	case 3:
		return join(split, 3, from, begin, records, size);
	default:
		return join(split, split.bytes, from, begin, records, size);
	}
}

/* The columns after the templates, and what of them was joined. */
struct joining {
	const struct vp_templates *templates;
	struct vp_split split;
	const uint8_t *indices, *addresses, *differences;
	uint64_t time; /* of the last record */
	char *to, *end;
};

/* Numbers of `bytes` bytes, up to 4, whose lowest bytes are at `plane`. */
static void join_planes(const uint8_t *plane, size_t stride, uint32_t bytes, uint32_t n,
			uint32_t numbers[BATCH])
{
	for (uint32_t i = 0; i < n; i++)
		numbers[i] = bytes ? plane[i] : 0;
	for (uint32_t byte = 1; byte < bytes; byte++)
		for (uint32_t i = 0; i < n; i++)
			numbers[i] |= (uint32_t)plane[byte * stride + i] << (8 * byte);
}

/* Writes a record and what follows up to the size of the largest one: a copy of constant size is
 * faster. */
static VP_INLINE void put_record(char *to, const char *record, struct vp_template about,
				 uint32_t address, uint64_t time)
{
	memcpy(to, record, VP_TEMPLATE_ROOM);
	memcpy(to, &time, TIME);
	/* Without an address word, these are bytes of the next record, or of the room after it. */
	memcpy(to + about.address, &address, VP_ADDRESS_BYTES);
}

/* Joins the records from `first` on; false: malformed. */
static bool join_batch(struct joining *joining, uint32_t first, uint32_t n)
{
	const struct vp_templates *templates = joining->templates;
	size_t count = joining->split.count;
	uint32_t bytes = joining->split.bytes, low = bytes < 4 ? bytes : 4;
	uint32_t addresses[BATCH], differences[BATCH], upper[BATCH];
	char *to = joining->to, spare[VP_TEMPLATE_ROOM + VP_ADDRESS_BYTES];

	join_planes(joining->addresses + first, count, VP_ADDRESS_BYTES, n, addresses);
	join_planes(joining->differences + first, count, low, n, differences);
	join_planes(joining->differences + low * count + first, count, bytes - low, n, upper);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t index = joining->indices[first + i];
		size_t left = (size_t)(joining->end - to);
		if (index >= templates->count)
			return false;
		struct vp_template about = templates->about[index];
		joining->time += differences[i] | (uint64_t)upper[i] << 32;
		bool roomy = left >= sizeof(spare);
		put_record(roomy ? to : spare, templates->records[index], about, addresses[i],
			   joining->time);
		if (VP_RARELY(!roomy)) {
			if (left < about.size)
				return false;
			memcpy(to, spare, about.size);
		}
		to += about.size;
	}
	joining->to = to;
	return true;
}

static bool join_templates(struct vp_split split, const char *from, size_t split_size,
			   uint64_t begin, char *records, size_t size)
{
	struct vp_templates templates;
	size_t rests = vp_templates_read(&templates, split.templates, from, split_size);
	size_t count = split.count;

	if (!rests || split_size - rests != count * (1 + VP_ADDRESS_BYTES + (size_t)split.bytes))
		return false;
	const uint8_t *columns = (const uint8_t *)from + rests;
	struct joining joining = {.templates = &templates,
				  .split = split,
				  .indices = columns,
				  .addresses = columns + count,
				  .differences = columns + count * (1 + VP_ADDRESS_BYTES),
				  .time = begin,
				  .to = records,
				  .end = records + size};
	for (uint32_t first = 0; first < split.count; first += BATCH) {
		uint32_t n = split.count - first < BATCH ? split.count - first : BATCH;
		if (!join_batch(&joining, first, n))
			return false;
	}
	return joining.to == joining.end;
}

bool vp_records_join(struct vp_split split, const char *from, size_t split_size, uint64_t begin,
		     char *records, size_t size)
{
	if (split.bytes > TIME || split.reserved || split.count > size / HEADER)
		return false;
	if (split.templates)
		return join_templates(split, from, split_size, begin, records, size);
	return split_size == size - (size_t)split.count * (TIME - split.bytes) &&
	       join_records(split, from, begin, records, size);
}
