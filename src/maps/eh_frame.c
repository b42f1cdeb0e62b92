/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The format is that of the LSB ("Exception Frames"): DWARF's .debug_frame with other pointers. */
#include "maps/eh_frame.h"

#include <string.h>

#include "base/cursor.h"
#include "base/vec.h"

enum {
	LONGEST_AUGMENTATION = 16,
	LONG_LENGTH = 0xffffffff,
	HEADER_VERSION = 1,
};

/* How a pointer is encoded: format in the low four bits, base above. */
enum {
	ABSPTR = 0x00,
	UDATA2 = 0x02,
	UDATA4 = 0x03,
	UDATA8 = 0x04,
	SDATA2 = 0x0a,
	SDATA4 = 0x0b,
	SDATA8 = 0x0c,
	FORMAT = 0x0f,
	PCREL = 0x10,
	DATAREL = 0x30,
	BASE = 0x70,
	INDIRECT = 0x80,
	OMIT = 0xff,
};

struct frames {
	const struct vp_eh_frame *tables;
	vp_code_ranges *ret;
	uint64_t cie; /* offset of the last one; UINT64_MAX: none */
	uint8_t encoding;
};

/* One record: its body starts with the id. */
struct record {
	uint64_t body, end; /* offsets in .eh_frame */
	uint32_t id;
};

static uint8_t next_byte(struct vp_cursor *cursor)
{
	struct vp_slice slice = vp_cursor_bytes(cursor, 1);

	return slice.size ? (uint8_t)slice.bytes[0] : 0;
}

static void skip_leb128(struct vp_cursor *cursor)
{
	while (next_byte(cursor) & 0x80)
		;
}

/* A value of this format; fails the cursor on other formats. */
static uint64_t next_value(const struct frames *frames, struct vp_cursor *cursor, uint8_t encoding)
{
	switch (encoding & FORMAT) {
	case ABSPTR:
		return frames->tables->is_64_bit ? vp_cursor_u64(cursor) : vp_cursor_u32(cursor);
	case UDATA2:
		return vp_cursor_u16(cursor);
	case UDATA4:
		return vp_cursor_u32(cursor);
	case SDATA2:
		return (uint64_t)(int16_t)vp_cursor_u16(cursor);
	case SDATA4:
		return (uint64_t)(int32_t)vp_cursor_u32(cursor);
	case UDATA8:
	case SDATA8:
		return vp_cursor_u64(cursor);
	default:
		cursor->failed = true;
		return 0;
	}
}

static struct vp_cursor cursor_at(const struct vp_section_bytes *section, uint64_t offset,
				  uint64_t end)
{
	return vp_cursor_of((const char *)section->bytes + offset, end - offset);
}

/* The record at `offset`; false at the end, which an empty record marks. */
static bool read_record(const struct frames *frames, uint64_t offset, struct record *ret)
{
	const struct vp_section_bytes *frame = &frames->tables->frame;

	if (offset >= frame->size)
		return false;
	struct vp_cursor cursor = cursor_at(frame, offset, frame->size);
	uint64_t size = vp_cursor_u32(&cursor);
	if (size == LONG_LENGTH)
		size = vp_cursor_u64(&cursor);
	if (!vp_cursor_ok(&cursor) || size < sizeof(ret->id) || size > vp_cursor_left(&cursor))
		return false;
	ret->body = offset + vp_cursor_offset(&cursor);
	ret->end = ret->body + size;
	ret->id = vp_cursor_u32(&cursor);
	return true;
}

/* Passes the data of the augmentation's letters up to the encoding of addresses. */
static bool find_encoding(const struct frames *frames, const char *letters,
			  struct vp_cursor *cursor, uint8_t *ret)
{
	*ret = ABSPTR;
	if (!letters[0])
		return true;
	if (letters[0] != 'z')
		return false;
	skip_leb128(cursor);
	for (const char *letter = letters + 1; *letter; letter++) {
		if (*letter == 'R') {
			*ret = next_byte(cursor);
			return vp_cursor_ok(cursor);
		}
		if (*letter == 'L')
			next_byte(cursor);
		else if (*letter == 'P')
			next_value(frames, cursor, next_byte(cursor));
		else if (*letter != 'S' && *letter != 'B' && *letter != 'G')
			return false;
	}
	return vp_cursor_ok(cursor);
}

/* The encoding of addresses in the entries of the CIE at `offset`. */
static bool read_cie(struct frames *frames, uint64_t offset)
{
	char letters[LONGEST_AUGMENTATION + 1] = "";
	struct record record;

	if (offset == frames->cie)
		return true;
	if (!read_record(frames, offset, &record) || record.id)
		return false;
	struct vp_cursor cursor = cursor_at(&frames->tables->frame, record.body + 4, record.end);
	uint8_t version = next_byte(&cursor);
	struct vp_slice augmentation = vp_cursor_string(&cursor);
	if (!vp_cursor_ok(&cursor) || augmentation.size > LONGEST_AUGMENTATION)
		return false;
	memcpy(letters, augmentation.bytes, augmentation.size);
	skip_leb128(&cursor); /* alignment factors of code and data */
	skip_leb128(&cursor);
	if (version == 1)
		next_byte(&cursor);
	else
		skip_leb128(&cursor);
	if (!find_encoding(frames, letters, &cursor, &frames->encoding) ||
	    (frames->encoding & INDIRECT) ||
	    ((frames->encoding & BASE) && (frames->encoding & BASE) != PCREL))
		return false;
	frames->cie = offset;
	return true;
}

/* The function of an FDE; false if it is damaged. */
static bool read_fde(struct frames *frames, const struct record *record, struct vp_code_range *ret)
{
	if (!record->id || record->id > record->body ||
	    !read_cie(frames, record->body - record->id))
		return false;
	struct vp_cursor cursor = cursor_at(&frames->tables->frame, record->body + 4, record->end);
	uint64_t base =
	    (frames->encoding & BASE) == PCREL ? frames->tables->frame.addr + record->body + 4 : 0;
	ret->start = next_value(frames, &cursor, frames->encoding) + base;
	ret->size = next_value(frames, &cursor, frames->encoding & FORMAT);
	return vp_cursor_ok(&cursor) && ret->size;
}

static void add_range(struct frames *frames, const struct vp_code_range *range)
{
	if (frames->ret->count < VP_CODE_RANGES_MAX)
		vp_vec_push(frames->ret, *range);
}

static void walk_records(struct frames *frames)
{
	struct vp_code_range range;
	struct record record = {0};

	while (read_record(frames, record.end, &record))
		if (record.id && read_fde(frames, &record, &range))
			add_range(frames, &range);
}

/* An entry of the header: where a function starts, and the address of its FDE. */
static void take_entry(struct frames *frames, uint64_t start, uint64_t fde)
{
	struct vp_code_range range = {.start = start};
	struct record record;
	uint64_t offset = fde - frames->tables->frame.addr;

	if (!read_record(frames, offset, &record) || !read_fde(frames, &record, &range) ||
	    range.start != start)
		range = (struct vp_code_range){.start = start};
	add_range(frames, &range);
}

/* Linkers write sorted tables of 32-bit offsets from the header's own address only. */
static void walk_header(struct frames *frames)
{
	const struct vp_section_bytes *header = &frames->tables->header;
	struct vp_cursor cursor = vp_cursor_of(header->bytes, header->size);
	uint8_t version = next_byte(&cursor), frame = next_byte(&cursor);
	uint8_t count = next_byte(&cursor), table = next_byte(&cursor);

	if (version != HEADER_VERSION || frame == OMIT || count == OMIT ||
	    table != (DATAREL | SDATA4))
		return;
	next_value(frames, &cursor, frame);
	for (uint64_t left = next_value(frames, &cursor, count); left; left--) {
		uint64_t start = next_value(frames, &cursor, SDATA4);
		uint64_t fde = next_value(frames, &cursor, SDATA4);
		if (!vp_cursor_ok(&cursor))
			return;
		take_entry(frames, header->addr + start, header->addr + fde);
	}
}

void vp_eh_frame_functions(const struct vp_eh_frame *tables, vp_code_ranges *ret)
{
	struct frames frames = {.tables = tables, .ret = ret, .cie = UINT64_MAX};

	walk_records(&frames);
	walk_header(&frames);
}
