/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growable byte buffer. */
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
/* The same for sizes that a file decides: NULL if out of memory. */
void *vp_buffer_try_extend(struct vp_buffer *buffer, size_t size);
/* Append `size` bytes, a terminated string, a character `size` times, and text formatted as by
 * printf(). The first three are inline: reports consist of many short pieces. */

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
/* The same without padding; much faster than printf(), for exports with millions of lines. */
void vp_buffer_count(struct vp_buffer *buffer, uint64_t number);

/* Assembles a whole line, twice as fast as appending its parts: reserve the line's maximum size,
 * write the parts (each call returns the position of the next), then end the line. */
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
/* Copies in blocks, without a call. Source and destination need VP_PUT_BLOCK spare bytes. */
static inline char *vp_put_blocks(char *at, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += VP_PUT_BLOCK)
		memcpy(at + i, bytes + i, VP_PUT_BLOCK);
	return at + size;
}
/* Writes a number. VP_PUT_COUNT bytes at `at` may be overwritten. */
char *vp_put_count(char *at, uint64_t number);
/* Writes a number below 10^9 with nine digits. */
char *vp_put_nine(char *at, uint32_t number);
/* Like vp_buffer_padded(). Always writes VP_PUT_PADDED bytes; the returned position is right. */
char *vp_put_padded(char *to, uint64_t number, size_t width, char with);

/* The bytes with a terminating zero (not counted in size); valid until the next change. */
const char *vp_buffer_text(struct vp_buffer *buffer);

#endif
