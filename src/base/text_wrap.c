/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text_wrap.h"

#include <string.h>

enum { DEEPEST = 32, LONGEST_LABEL = 16, STEP = 2 };

/* Number of bytes of the first `width` characters. */
static size_t wrap_bytes(const char *line, size_t size, size_t width)
{
	size_t at = 0;

	for (; at < size; at++)
		if ((line[at] & 0xc0) != 0x80 && !width--)
			break;
	return at;
}

static size_t text_begin(const char *line, size_t size)
{
	size_t at = 0;

	while (at < size && line[at] == ' ')
		at++;
	return at;
}

/* Column at which continuation lines start: after the label and its blanks, or after the first
 * character. */
static size_t text_column(const char *line, size_t size)
{
	size_t first = text_begin(line, size), column = 0;

	for (size_t i = first; i + STEP < size && i < DEEPEST; i++) {
		bool blanks = line[i] == ' ' && line[i + 1] == ' ' && line[i + 2] != ' ';
		bool label = !column && (line[i] == ':' || line[i] == '.') && line[i + 1] == ' ';
		if (blanks || (label && i < first + LONGEST_LABEL))
			column = i + 2;
	}
	while (column && column < size && line[column] == ' ')
		column++;
	return column ? column : first + STEP;
}

/* Where to break the line: at the last blank within `width` characters that has text before it,
 * otherwise at the first blank after them; `size`: nowhere. */
static size_t wrap_division(const char *line, size_t size, size_t begin, size_t width)
{
	size_t room = wrap_bytes(line, size, width + 1), at = room;

	if (room == size && wrap_bytes(line, size, width) == size)
		return size;
	while (at > begin && line[at - 1] != ' ')
		at--;
	if (at > begin)
		return at - 1;
	const char *blank = memchr(line + room, ' ', size - room);
	return blank ? (size_t)(blank - line) : size;
}

static void put_line(const char *line, size_t size, size_t width, struct vp_buffer *out)
{
	bool note = size && line[0] == '#';
	size_t indent = note ? STEP + 2 : text_column(line, size), begin = indent;

	if (indent > width * 2 / 3) {
		indent = STEP + 2;
		begin = text_begin(line, size) + 1;
	}
	for (size_t used = 0;; used = indent, begin = 0) {
		size_t at = wrap_division(line, size, begin, width > used ? width - used : 1);
		size_t end = at;
		while (at < size && end && line[end - 1] == ' ')
			end--;
		vp_buffer_append(out, line, end);
		vp_buffer_string(out, "\n");
		while (at < size && line[at] == ' ')
			at++;
		line += at;
		size -= at;
		if (!size)
			return;
		vp_buffer_printf(out, "%-*s", (int)indent, note ? "#" : "");
	}
}

void vp_text_wrap(const struct vp_buffer *text, size_t width, bool all, struct vp_buffer *out)
{
	const char *at = text->bytes, *end = at + text->size;

	if (!width) {
		vp_buffer_append(out, text->bytes, text->size);
		return;
	}
	while (at < end) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		size_t size = (size_t)((feed ? feed : end) - at);
		if (all || *at == '#' || *at == '(') {
			put_line(at, size, width, out);
		} else {
			vp_buffer_append(out, at, size);
			vp_buffer_string(out, "\n");
		}
		at += size + (feed != NULL);
	}
}
