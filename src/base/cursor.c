/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cursor.h"

#include <string.h>

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

static bool cursor_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct vp_slice vp_cursor_word(struct vp_cursor *cursor)
{
	size_t left = vp_cursor_left(cursor), size = 0;

	while (size < left && !cursor_is_blank(cursor->next[size]))
		size++;
	if (!size)
		cursor->failed = true;
	struct vp_slice word = vp_cursor_bytes(cursor, size);
	while (vp_cursor_left(cursor) && cursor_is_blank(*cursor->next))
		cursor->next++;
	return word;
}

struct vp_slice vp_cursor_string(struct vp_cursor *cursor)
{
	const char *end = memchr(cursor->next, 0, vp_cursor_left(cursor));

	if (!end) {
		cursor->failed = true;
		return (struct vp_slice){"", 0};
	}
	struct vp_slice text = vp_cursor_bytes(cursor, (size_t)(end - cursor->next));
	vp_cursor_bytes(cursor, 1);
	return text;
}

struct vp_slice vp_cursor_rest(struct vp_cursor *cursor)
{
	return vp_cursor_bytes(cursor, vp_cursor_left(cursor));
}

static uint64_t cursor_number(struct vp_cursor *cursor, unsigned base)
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
	return cursor_number(cursor, 10);
}

uint64_t vp_cursor_hex(struct vp_cursor *cursor)
{
	return cursor_number(cursor, 16);
}

bool vp_slice_is(struct vp_slice slice, const char *text)
{
	return slice.size == strlen(text) && !memcmp(slice.bytes, text, slice.size);
}
