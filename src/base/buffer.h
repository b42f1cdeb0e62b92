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
/* A number as printf("%llu") has it, many times faster: reports have a hundred thousand rows. */
void vp_buffer_count(struct vp_buffer *buffer, uint64_t number);
/* The same behind a character up to a width of at most 24. */
void vp_buffer_padded(struct vp_buffer *buffer, uint64_t number, size_t width, char with);
/* The bytes with a terminating zero (not counted in size); valid until the next change. */
const char *vp_buffer_text(struct vp_buffer *buffer);

#endif
