/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_split.h"

#include <string.h>

#include "base/macros.h"
#include "schema/event_class.h"
#include "schema/records.h"
#include "schema/schema.h"

enum {
	TIME = sizeof(uint64_t),
	ID = sizeof(uint16_t),
	HEADER = TIME + ID,
	USUAL_REST = sizeof(struct vp_guest_sample) - TIME /* of the largest sample */
};

/* Size of a record without its time, of which `left` bytes exist; 0: not a record. */
static size_t rest_size(const char *rest, size_t left)
{
	struct {
		uint16_t id, size;
	} begin = {.size = 0};

	if (left < ID)
		return 0;
	memcpy(&begin, rest, left < sizeof(begin) ? left : sizeof(begin));
	size_t size = begin.id < VP_ID_DEFINED ? vp_record_size(begin.id) : begin.size;
	return size >= HEADER && size - TIME <= left ? size - TIME : 0;
}

/* Bytes for the largest of several numbers; `bits`: OR of all. */
static uint32_t bytes_of(uint64_t bits)
{
	uint32_t bytes = 0;

	for (; bits; bits >>= 8)
		bytes++;
	return bytes;
}

/* Writes the lowest bytes of all numbers, then the next bytes, and so on. */
static void put_planes(const uint64_t *numbers, struct vp_split split, char *to)
{
	for (uint32_t byte = 0; byte < split.bytes; byte++)
		for (uint32_t i = 0; i < split.count; i++)
			*to++ = (char)(numbers[i] >> (8 * byte));
}

struct vp_split vp_records_split(struct vp_splitter *splitter, const char *records, size_t size,
				 uint64_t begin)
{
	struct vp_split split = {.count = 0};
	char *to = splitter->bytes;
	uint64_t time, bits = 0;

	for (size_t at = 0; at < size;) {
		size_t left = size - at;
		size_t rest = left < HEADER ? 0 : rest_size(records + at + TIME, left - TIME);
		if (!rest)
			return (struct vp_split){.count = 0};
		memcpy(&time, records + at, TIME);
		memcpy(to, records + at + TIME, rest);
		splitter->differences[split.count++] = time - begin;
		bits |= time - begin;
		begin = time;
		to += rest;
		at += TIME + rest;
	}
	split.bytes = bytes_of(bits);
	put_planes(splitter->differences, split, to);
	return split;
}

size_t vp_split_size(struct vp_split split, size_t size)
{
	if (split.bytes > TIME || split.count > size / HEADER)
		return SIZE_MAX;
	return size - (size_t)split.count * (TIME - split.bytes);
}

/* Copies at least `size` of the `left` bytes. A copy of constant size is faster. */
static VP_INLINE void copy_rest(char *to, const char *from, size_t size, size_t left)
{
	if (VP_RARELY(size > USUAL_REST || left < USUAL_REST))
		memcpy(to, from, size);
	else
		memcpy(to, from, USUAL_REST);
}

/* The same as vp_records_join(), for a constant number of bytes per difference. */
static VP_INLINE bool join(struct vp_split split, uint32_t bytes, const char *from, uint64_t begin,
			   char *records, size_t size)
{
	const char *differences = from + size - (size_t)split.count * TIME;
	char *to = records, *end = records + size;

	for (uint32_t i = 0; i < split.count; i++) {
		size_t left = (size_t)(differences - from), rest = rest_size(from, left);
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

bool vp_records_join(struct vp_split split, const char *from, uint64_t begin, char *records,
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
