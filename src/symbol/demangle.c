/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <libiberty/demangle.h>

enum { LONGEST_SYMBOL = 4096, LONGEST_RESULT = 16 * 1024 };

struct result {
	struct vp_buffer *buffer;
	size_t before;
	jmp_buf too_long;
};

/*
 * A short symbol can stand for an exponentially long name, and the demangler has no other way out
 * than this callback. It keeps its state on the stack, so leaving it by a jump loses nothing.
 */
static void take_piece(const char *piece, size_t size, void *context)
{
	struct result *result = context;

	if (result->buffer->size - result->before + size > LONGEST_RESULT)
		longjmp(result->too_long, 1);
	vp_buffer_append(result->buffer, piece, size);
}

static bool demangle_into(struct result *result, const char *symbol)
{
	if (setjmp(result->too_long))
		return false;
	/* Rust's legacy names are C++ names too: ask for Rust first. */
	if (rust_demangle_callback(symbol, DMGL_NO_OPTS, take_piece, result))
		return true;
	result->buffer->size = result->before;
	if (strncmp(symbol, "_Z", 2))
		return false;
	return cplus_demangle_v3_callback(symbol, DMGL_NO_OPTS, take_piece, result);
}

void vp_demangle(const char *symbol, struct vp_buffer *buffer)
{
	struct result result = {.buffer = buffer, .before = buffer->size};

	if (symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R') &&
	    strnlen(symbol, LONGEST_SYMBOL) < LONGEST_SYMBOL && demangle_into(&result, symbol) &&
	    buffer->size > result.before)
		return;
	buffer->size = result.before;
	vp_buffer_string(buffer, symbol);
}

/* Length of the well-formed, printable UTF-8 character at `text`, or 0. */
static size_t character_size(const unsigned char *text, size_t left)
{
	unsigned char first = text[0];
	size_t size;
	unsigned low = 0x80, high = 0xbf; /* what the second byte may be */

	if (first < 0x80)
		return first >= ' ' && first != 0x7f;
	if (first >= 0xc2 && first <= 0xdf)
		size = 2;
	else if (first >= 0xe0 && first <= 0xef)
		size = 3;
	else if (first >= 0xf0 && first <= 0xf4)
		size = 4;
	else
		return 0;
	if (first == 0xc2 || first == 0xe0) /* C1 controls; overlong forms */
		low = 0xa0;
	else if (first == 0xed) /* surrogates */
		high = 0x9f;
	else if (first == 0xf0) /* overlong forms */
		low = 0x90;
	else if (first == 0xf4) /* beyond U+10FFFF */
		high = 0x8f;
	if (left < size || text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i < size; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return size;
}

void vp_text_clean(const char *text, size_t size, struct vp_buffer *buffer)
{
	const unsigned char *bytes = (const unsigned char *)text;

	for (size_t i = 0; i < size;) {
		size_t length = character_size(bytes + i, size - i);
		if (length)
			vp_buffer_append(buffer, text + i, length);
		else
			vp_buffer_append(buffer, "?", 1);
		i += length ? length : 1;
	}
}
