/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes that grow: what writers build before they write. */
#ifndef VP_BASE_BUFFER_H
#define VP_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

struct vp_buffer {
	char *bytes; /* not terminated; see vp_buffer_text() */
	size_t size;
	size_t room;
};

/* Frees the bytes; the buffer is empty then and can be used again. */
void vp_buffer_deinit(struct vp_buffer *buffer);
/* Makes room for `size` more bytes and returns where they go; the caller fills them. */
void *vp_buffer_extend(struct vp_buffer *buffer, size_t size);
/* The same for sizes that a file decides: NULL if memory is out. */
void *vp_buffer_try_extend(struct vp_buffer *buffer, size_t size);
/* Append `size` bytes, a terminated string, `size` times a character, and text as printf() prints
 * it. The first three are inline: reports are made of a few bytes at a time. */

static inline void vp_buffer_append(struct vp_buffer *buffer, const void *bytes, size_t size)
{
	if (buffer->room - buffer->size < size) {
		memcpy(vp_buffer_extend(buffer, size), bytes, size);
	} else if (size) {
		memcpy(buffer->bytes + buffer->size, bytes, size);
		buffer->size += size;
	}
}
static inline void vp_buffer_string(struct vp_buffer *buffer, const char *text)
{
	vp_buffer_append(buffer, text, strlen(text));
}
static inline void vp_buffer_fill(struct vp_buffer *buffer, char with, size_t size)
{
	if (size)
		memset(vp_buffer_extend(buffer, size), with, size);
}
void vp_buffer_printf(struct vp_buffer *buffer, const char *format, ...) VP_PRINTF(2, 3)
    __attribute__((nonnull(2)));
/* Appends a number as printf("%llu") prints it, padded on the left with `with` to a width of at
 * most 24. */
void vp_buffer_padded(struct vp_buffer *buffer, uint64_t number, size_t width, char with);
/* The same without a width, many times faster than printf(): an export has millions of lines. */
void vp_buffer_count(struct vp_buffer *buffer, uint64_t number);

/*
 * Where a line is put together at once, which is twice as fast as to append its parts: room for as
 * many bytes as it has at most, then parts, each of which returns where the next one goes, then the
 * end.
 */
enum { VP_PUT_BLOCK = 32, VP_PUT_COUNT = 20, VP_PUT_PADDED = 32 };
static inline char *vp_buffer_room(struct vp_buffer *buffer, size_t size)
{
	if (buffer->room - buffer->size < size) {
		vp_buffer_extend(buffer, size);
		buffer->size -= size;
	}
	return buffer->bytes + buffer->size;
}
static inline void vp_buffer_end(struct vp_buffer *buffer, const char *end)
{
	buffer->size = (size_t)(end - buffer->bytes);
}
static inline char *vp_put_text(char *at, const char *text)
{
	size_t size = strlen(text);

	memcpy(at, text, size);
	return at + size;
}
/* Copies in blocks, without a call: both places must have room for one block more. */
static inline char *vp_put_blocks(char *at, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += VP_PUT_BLOCK)
		memcpy(at + i, bytes + i, VP_PUT_BLOCK);
	return at + size;
}
/* Writes a number. VP_PUT_COUNT bytes at `at` may be overwritten. */
char *vp_put_count(char *at, uint64_t number);
/* As vp_buffer_padded(): VP_PUT_PADDED bytes are written, whatever the width. */
char *vp_put_padded(char *to, uint64_t number, size_t width, char with);

/* The bytes with a terminating zero (not counted in size); valid until the next change. */
const char *vp_buffer_text(struct vp_buffer *buffer);

#endif
