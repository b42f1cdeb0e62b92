/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cursor.h"

#include <string.h>

struct vp_cursor vp_cursor_of(const void *bytes, size_t size)
{
	const char *start = size ? bytes : "";
	return (struct vp_cursor){.start = start, .next = start, .end = start + size};
}

bool vp_cursor_ok(const struct vp_cursor *cursor)
{
	return !cursor->failed;
}

size_t vp_cursor_offset(const struct vp_cursor *cursor)
{
	return (size_t)(cursor->next - cursor->start);
}

size_t vp_cursor_left(const struct vp_cursor *cursor)
{
	return cursor->failed ? 0 : (size_t)(cursor->end - cursor->next);
}

struct vp_slice vp_cursor_bytes(struct vp_cursor *cursor, size_t size)
{
	if (vp_cursor_left(cursor) < size) {
		cursor->failed = true;
		return (struct vp_slice){"", 0};
	}
	struct vp_slice slice = {cursor->next, size};
	cursor->next += size;
	return slice;
}

static uint64_t little_endian(struct vp_cursor *cursor, size_t size)
{
	struct vp_slice slice = vp_cursor_bytes(cursor, size);
	uint64_t value = 0;

	for (size_t i = slice.size; i-- > 0;)
		value = value << 8 | (unsigned char)slice.bytes[i];
	return value;
}

uint64_t vp_cursor_u64(struct vp_cursor *cursor)
{
	return little_endian(cursor, 8);
}

uint32_t vp_cursor_u32(struct vp_cursor *cursor)
{
	return (uint32_t)little_endian(cursor, 4);
}

uint16_t vp_cursor_u16(struct vp_cursor *cursor)
{
	return (uint16_t)little_endian(cursor, 2);
}

bool vp_cursor_line(struct vp_cursor *cursor, struct vp_slice *line)
{
	size_t left = vp_cursor_left(cursor);
	if (!left)
		return false;
	const char *newline = memchr(cursor->next, '\n', left);
	*line = vp_cursor_bytes(cursor, newline ? (size_t)(newline - cursor->next) : left);
	if (newline)
		cursor->next++;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct vp_slice vp_cursor_word(struct vp_cursor *cursor)
{
	size_t left = vp_cursor_left(cursor), size = 0;

	while (size < left && !is_blank(cursor->next[size]))
		size++;
	if (!size)
		cursor->failed = true;
	struct vp_slice word = vp_cursor_bytes(cursor, size);
	while (vp_cursor_left(cursor) && is_blank(*cursor->next))
		cursor->next++;
	return word;
}

struct vp_slice vp_cursor_rest(struct vp_cursor *cursor)
{
	return vp_cursor_bytes(cursor, vp_cursor_left(cursor));
}

static uint64_t number(struct vp_cursor *cursor, unsigned base)
{
	struct vp_slice word = vp_cursor_word(cursor);
	uint64_t value = 0;

	for (size_t i = 0; i < word.size; i++) {
		int digit = vp_hex_value(word.bytes[i]);
		if (digit < 0 || (unsigned)digit >= base ||
		    __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (unsigned)digit, &value)) {
			cursor->failed = true;
			return 0;
		}
	}
	return cursor->failed ? 0 : value;
}

uint64_t vp_cursor_decimal(struct vp_cursor *cursor)
{
	return number(cursor, 10);
}

uint64_t vp_cursor_hex(struct vp_cursor *cursor)
{
	return number(cursor, 16);
}

bool vp_slice_is(struct vp_slice slice, const char *text)
{
	return slice.size == strlen(text) && !memcmp(slice.bytes, text, slice.size);
}
