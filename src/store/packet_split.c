/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_split.h"

#include <string.h>

#include "schema/event_class.h"
#include "schema/schema.h"

enum { TIME = sizeof(uint64_t), ID = sizeof(uint16_t), HEADER = TIME + ID };

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

bool vp_records_join(struct vp_split split, const char *from, uint64_t begin, char *records,
		     size_t size)
{
	const char *differences = from + size - (size_t)split.count * TIME;
	size_t at = 0;

	for (uint32_t i = 0; i < split.count; i++) {
		size_t left = (size_t)(differences - from), rest = rest_size(from, left);
		if (!rest)
			return false;
		for (uint32_t byte = 0; byte < split.bytes; byte++)
			begin += (uint64_t)(uint8_t)differences[byte * split.count + i]
				 << (8 * byte);
		memcpy(records + at, &begin, TIME);
		memcpy(records + at + TIME, from, rest);
		from += rest;
		at += TIME + rest;
	}
	return at == size;
}
