/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Format: LSB "Exception Frames", DWARF's .debug_frame with other pointer encodings. */
#include "maps/eh_frame.h"

#include <string.h>

#include "base/cursor.h"
#include "base/vec.h"

enum {
	LONGEST_AUGMENTATION = 16,
	LONG_LENGTH = 0xffffffff,
	HEADER_VERSION = 1,
	ROW = 8, /* bytes of a row in the header's table */
};

/* Pointer encoding: format in the low four bits, base above. */
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

/* A CIE: the common part of many entries. */
struct cie {
	uint64_t offset;  /* UINT64_MAX: none read yet */
	uint8_t encoding; /* of addresses in its entries */
	bool has_sizes;   /* entries have augmentation data with a size */
	bool is_signal;
	uint64_t code_factor, return_register;
	int64_t data_factor;
	uint64_t first, first_end; /* its instructions */
};

struct frames {
	const struct vp_eh_frame *tables;
	vp_code_ranges *ret;
	struct cie cie; /* the CIE read last */
};

/* A record; its body starts with the id. */
struct record {
	uint64_t body, end; /* offsets in .eh_frame */
	uint32_t id;
};

static uint8_t next_byte(struct vp_cursor *cursor)
{
	struct vp_slice slice = vp_cursor_bytes(cursor, 1);

	return slice.size ? (uint8_t)slice.bytes[0] : 0;
}

uint64_t vp_leb128(struct vp_cursor *cursor)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		byte = next_byte(cursor);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

int64_t vp_leb128_signed(struct vp_cursor *cursor)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		byte = next_byte(cursor);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			value |= ~0ULL << (shift + 7);
		return (int64_t)value;
	}
	cursor->failed = true;
	return 0;
}

/* Reads a value of this format; fails the cursor on unsupported formats. */
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

/* Reads the record at `offset`; false at the end of the section or at an empty record, which
 * terminates it. */
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

/* Reads the augmentation: letters, and data for most of them. */
static bool read_augmentation(const struct frames *frames, const char *letters,
			      struct vp_cursor *cursor, struct cie *ret)
{
	ret->encoding = ABSPTR;
	if (!letters[0])
		return true;
	if (letters[0] != 'z')
		return false;
	ret->has_sizes = true;
	uint64_t size = vp_leb128(cursor);
	struct vp_slice data = vp_cursor_bytes(cursor, size);
	struct vp_cursor inside = vp_cursor_of(data.bytes, data.size);
	for (const char *letter = letters + 1; *letter; letter++) {
		if (*letter == 'R')
			ret->encoding = next_byte(&inside);
		else if (*letter == 'L')
			next_byte(&inside);
		else if (*letter == 'P')
			next_value(frames, &inside, next_byte(&inside));
		else if (*letter == 'S')
			ret->is_signal = true;
		else if (*letter != 'B' && *letter != 'G')
			return false;
	}
	return vp_cursor_ok(cursor) && vp_cursor_ok(&inside);
}

/* Reads the CIE at `offset`, unless it is the one read last. */
static bool read_cie(struct frames *frames, uint64_t offset)
{
	char letters[LONGEST_AUGMENTATION + 1] = "";
	struct cie cie = {.offset = offset};
	struct record record;

	if (offset == frames->cie.offset)
		return true;
	if (!read_record(frames, offset, &record) || record.id)
		return false;
	struct vp_cursor cursor = cursor_at(&frames->tables->frame, record.body + 4, record.end);
	uint8_t version = next_byte(&cursor);
	struct vp_slice augmentation = vp_cursor_string(&cursor);
	if (!vp_cursor_ok(&cursor) || augmentation.size > LONGEST_AUGMENTATION)
		return false;
	memcpy(letters, augmentation.bytes, augmentation.size);
	cie.code_factor = vp_leb128(&cursor);
	cie.data_factor = vp_leb128_signed(&cursor);
	cie.return_register = version == 1 ? next_byte(&cursor) : vp_leb128(&cursor);
	if (!read_augmentation(frames, letters, &cursor, &cie) || (cie.encoding & INDIRECT) ||
	    ((cie.encoding & BASE) && (cie.encoding & BASE) != PCREL))
		return false;
	cie.first = record.body + 4 + vp_cursor_offset(&cursor);
	cie.first_end = record.end;
	frames->cie = cie;
	return true;
}

/* Reads an FDE: its function and unwind instructions. False: malformed. */
static bool read_fde(struct frames *frames, const struct record *record,
		     struct vp_eh_frame_entry *ret)
{
	const struct cie *cie = &frames->cie;

	if (!record->id || record->id > record->body ||
	    !read_cie(frames, record->body - record->id))
		return false;
	struct vp_cursor cursor = cursor_at(&frames->tables->frame, record->body + 4, record->end);
	uint64_t base =
	    (cie->encoding & BASE) == PCREL ? frames->tables->frame.addr + record->body + 4 : 0;
	*ret = (struct vp_eh_frame_entry){.code_factor = cie->code_factor,
					  .data_factor = cie->data_factor,
					  .return_register = cie->return_register,
					  .is_signal = cie->is_signal,
					  .first = cie->first,
					  .first_end = cie->first_end,
					  .own_end = record->end};
	ret->start = next_value(frames, &cursor, cie->encoding) + base;
	ret->size = next_value(frames, &cursor, cie->encoding & FORMAT);
	if (!vp_cursor_ok(&cursor) || !ret->size)
		return false;
	if (cie->has_sizes)
		vp_cursor_bytes(&cursor, vp_leb128(&cursor));
	/* A missing part ends the instructions. */
	ret->own =
	    vp_cursor_ok(&cursor) ? record->body + 4 + vp_cursor_offset(&cursor) : record->end;
	return true;
}

static void add_range(struct frames *frames, uint64_t start, uint64_t size)
{
	if (frames->ret->count < VP_CODE_RANGES_MAX)
		vp_vec_push(frames->ret, ((struct vp_code_range){start, size}));
}

static void walk_records(struct frames *frames)
{
	struct vp_eh_frame_entry entry;
	struct record record = {0};

	while (read_record(frames, record.end, &record))
		if (record.id && read_fde(frames, &record, &entry))
			add_range(frames, entry.start, entry.size);
}

/* The entry for an address in the header's table. */
static bool read_entry(struct frames *frames, uint64_t fde, struct vp_eh_frame_entry *ret)
{
	struct record record;

	return read_record(frames, fde - frames->tables->frame.addr, &record) &&
	       read_fde(frames, &record, ret);
}

/* The header's table: rows of a function's start and the address of its FDE. */
struct rows {
	struct vp_cursor cursor; /* at the first row */
	uint64_t count;          /* from the header, unverified */
};

/* Only sorted tables of 32-bit offsets relative to the header are supported: linkers write no
 * others. */
static bool find_rows(const struct frames *frames, struct rows *ret)
{
	const struct vp_section_bytes *header = &frames->tables->header;
	struct vp_cursor cursor = vp_cursor_of(header->bytes, header->size);
	uint8_t version = next_byte(&cursor), frame = next_byte(&cursor);
	uint8_t count = next_byte(&cursor), table = next_byte(&cursor);

	if (version != HEADER_VERSION || frame == OMIT || count == OMIT ||
	    table != (DATAREL | SDATA4))
		return false;
	next_value(frames, &cursor, frame);
	ret->count = next_value(frames, &cursor, count);
	ret->cursor = cursor;
	return vp_cursor_ok(&cursor);
}

static void walk_header(struct frames *frames)
{
	uint64_t base = frames->tables->header.addr;
	struct vp_eh_frame_entry entry;
	struct rows rows;

	if (!find_rows(frames, &rows))
		return;
	for (; rows.count; rows.count--) {
		uint64_t start = base + next_value(frames, &rows.cursor, SDATA4);
		uint64_t fde = base + next_value(frames, &rows.cursor, SDATA4);
		if (!vp_cursor_ok(&rows.cursor))
			return;
		bool whole = read_entry(frames, fde, &entry) && entry.start == start;
		add_range(frames, start, whole ? entry.size : 0);
	}
}

void vp_eh_frame_functions(const struct vp_eh_frame *tables, vp_code_ranges *ret)
{
	struct frames frames = {.tables = tables, .ret = ret, .cie = {.offset = UINT64_MAX}};

	walk_records(&frames);
	walk_header(&frames);
}

/* Member 0 or 1 of a row, as an address. */
static uint64_t row_address(const struct frames *frames, const struct rows *rows, uint64_t number,
			    unsigned member)
{
	int32_t distance;

	memcpy(&distance, rows->cursor.next + number * ROW + member * sizeof(distance),
	       sizeof(distance));
	return frames->tables->header.addr + (uint64_t)(int64_t)distance;
}

bool vp_eh_frame_find(const struct vp_eh_frame *tables, uint64_t address,
		      struct vp_eh_frame_entry *ret)
{
	struct frames frames = {.tables = tables, .cie = {.offset = UINT64_MAX}};
	struct rows rows;

	if (!find_rows(&frames, &rows))
		return false;
	uint64_t low = 0, high = vp_cursor_left(&rows.cursor) / ROW;
	high = rows.count < high ? rows.count : high;
	while (low < high) { /* the last row that starts at or before the address is below `high` */
		uint64_t middle = low + (high - low) / 2;
		if (row_address(&frames, &rows, middle, 0) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && read_entry(&frames, row_address(&frames, &rows, low - 1, 1), ret) &&
	       address - ret->start < ret->size;
}
