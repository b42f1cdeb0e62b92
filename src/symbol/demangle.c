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

/* A short symbol can expand to an exponentially long name, and the demangler can be stopped only
 * in this callback. Its state is on the stack, so longjmp() leaks nothing. */
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
	/* Rust's legacy names are valid C++ names, too: Rust is tried first. */
	if (rust_demangle_callback(symbol, DMGL_NO_OPTS, take_piece, result))
		return true;
	result->buffer->size = result->before;
	if (strncmp(symbol, "_Z", 2))
		return false;
	return cplus_demangle_v3_callback(symbol, DMGL_NO_OPTS, take_piece, result);
}

void vp_demangle(const char *symbol, struct vp_buffer *buffer)
{
	static const char plt[] = "@plt"; /* suffix of an entry of the procedure linkage table */
	struct result result = {.buffer = buffer, .before = buffer->size};

	size_t size = strnlen(symbol, LONGEST_SYMBOL);

	if (symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R') && size < LONGEST_SYMBOL &&
	    demangle_into(&result, symbol) && buffer->size > result.before) {
		/* The demangler ignores what follows the function. */
		if (size > strlen(plt) && !strcmp(symbol + size - strlen(plt), plt))
			vp_buffer_string(buffer, plt);
		return;
	}
	buffer->size = result.before;
	vp_buffer_string(buffer, symbol);
}
