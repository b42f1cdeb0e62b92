/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/format.h"

#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

struct vp_build_id vp_build_id_of(const void *bytes, size_t size)
{
	struct vp_build_id id = {0};

	if (size && size <= VP_BUILD_ID_MAX) {
		id.size = (uint8_t)size;
		memcpy(id.bytes, bytes, size);
	}
	return id;
}

bool vp_build_id_parse(struct vp_slice text, struct vp_build_id *id)
{
	*id = (struct vp_build_id){0};
	if (vp_slice_is(text, "-"))
		return true;
	if (!text.size || text.size % 2 || text.size / 2 > VP_BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i < text.size / 2; i++) {
		int high = vp_hex_value(text.bytes[2 * i]),
		    low = vp_hex_value(text.bytes[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		id->bytes[i] = (uint8_t)(high << 4 | low);
	}
	id->size = (uint8_t)(text.size / 2);
	return true;
}

void vp_build_id_put(const struct vp_build_id *id, struct vp_buffer *buffer)
{
	if (!id || !id->size) {
		vp_buffer_append(buffer, "-", 1);
		return;
	}
	char *digits = vp_buffer_extend(buffer, 2 * (size_t)id->size);
	for (size_t i = 0; i < id->size; i++) {
		digits[2 * i] = hex_digits[id->bytes[i] >> 4];
		digits[2 * i + 1] = hex_digits[id->bytes[i] & 15];
	}
}

bool vp_build_id_equal(const struct vp_build_id *a, const struct vp_build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

bool vp_build_id_in_notes(const void *notes, size_t size, struct vp_build_id *id)
{
	enum { NOTE_GNU_BUILD_ID = 3 };
	struct vp_cursor cursor = vp_cursor_of(notes, size);

	while (vp_cursor_left(&cursor) >= 12) {
		uint32_t name_size = vp_cursor_u32(&cursor);
		uint32_t desc_size = vp_cursor_u32(&cursor);
		uint32_t type = vp_cursor_u32(&cursor);
		struct vp_slice name = vp_cursor_bytes(&cursor, (name_size + 3ULL) & ~3ULL);
		struct vp_slice desc = vp_cursor_bytes(&cursor, desc_size);
		if (!vp_cursor_ok(&cursor))
			return false;
		if (type == NOTE_GNU_BUILD_ID && name_size == 4 && !memcmp(name.bytes, "GNU", 4)) {
			*id = vp_build_id_of(desc.bytes, desc.size);
			return id->size != 0;
		}
		size_t padding = -desc_size & 3;
		if (vp_cursor_left(&cursor) < padding)
			return false;
		vp_cursor_bytes(&cursor, padding);
	}
	return false;
}

/* Characters that neither end a string nor need escaping. */
static const bool is_plain[256] = {
    ['!' ... '$'] = true, ['&' ... '~'] = true, [0x80 ... 0xff] = true};

/* Hot: called for each kernel symbol. */
void vp_maps_escape(const char *text, struct vp_buffer *buffer)
{
	if (!*text) {
		vp_buffer_append(buffer, "-", 1);
		return;
	}
	if (!strcmp(text, "-")) {
		vp_buffer_string(buffer, "%2d");
		return;
	}
	for (;; text++) {
		const char *plain = text;
		while (is_plain[(unsigned char)*text])
			text++;
		vp_buffer_append(buffer, plain, (size_t)(text - plain));
		unsigned char c = (unsigned char)*text;
		if (!c)
			return;
		char escaped[3] = {'%', hex_digits[c >> 4], hex_digits[c & 15]};
		vp_buffer_append(buffer, escaped, sizeof(escaped));
	}
}

void vp_maps_unescape(struct vp_slice word, struct vp_buffer *buffer)
{
	if (!word.size || vp_slice_is(word, "-"))
		return;
	char *out = vp_buffer_extend(buffer, word.size);
	size_t written = 0;
	for (size_t i = 0; i < word.size; i++) {
		char c = word.bytes[i];
		if (c == '%' && word.size - i > 2) {
			int high = vp_hex_value(word.bytes[i + 1]),
			    low = vp_hex_value(word.bytes[i + 2]);
			if (high >= 0 && low >= 0) {
				c = (char)(high << 4 | low);
				i += 2;
			}
		}
		out[written++] = c;
	}
	buffer->size -= word.size - written;
}
