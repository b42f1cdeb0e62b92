/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bounds-checked reader of untrusted bytes: a file, a socket, a guest.
 *
 * Every read either yields a value inside the bounds or marks the cursor as failed. After a failure
 * all further reads yield zero, so a parser may read several values and check vp_cursor_ok() once.
 */
#ifndef VP_BASE_CURSOR_H
#define VP_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct vp_cursor {
	const char *start;
	const char *next;
	const char *end;
	bool failed;
	bool swaps; /* byte order differs from the host's */
};

/* Part of the cursor's bytes; not terminated. */
struct vp_slice {
	const char *bytes;
	size_t size;
};

/* Binary reads are inline: each event has about a dozen. */

/* A cursor at the start of `size` bytes, which must outlive it and its slices. */
static inline struct vp_cursor vp_cursor_of(const void *bytes, size_t size)
{
	const char *start = size ? (const char *)bytes : "";

	return (struct vp_cursor){start, start, start + size, false, false};
}

/* False once any read has failed; failed reads return 0 or an empty slice. */
static inline bool vp_cursor_ok(const struct vp_cursor *cursor)
{
	return !cursor->failed;
}

/* Bytes read so far, and bytes left. */
static inline size_t vp_cursor_offset(const struct vp_cursor *cursor)
{
	return (size_t)(cursor->next - cursor->start);
}

static inline size_t vp_cursor_left(const struct vp_cursor *cursor)
{
	return cursor->failed ? 0 : (size_t)(cursor->end - cursor->next);
}

/* Binary: raw bytes and integers, little-endian unless `swaps`. */
static inline struct vp_slice vp_cursor_bytes(struct vp_cursor *cursor, size_t size)
{
	if (vp_cursor_left(cursor) < size) {
		cursor->failed = true;
		return (struct vp_slice){"", 0};
	}
	struct vp_slice slice = {cursor->next, size};
	cursor->next += size;
	return slice;
}

/* Text: skips a byte-order mark of UTF-8, which some editors put before a file's first character.
 */
static inline void vp_cursor_skip_mark(struct vp_cursor *cursor)
{
	if (vp_cursor_left(cursor) >= 3 && !memcmp(cursor->next, "\xef\xbb\xbf", 3))
		cursor->next += 3;
}

#define VP_CURSOR_INTEGER(bits)                                                                    \
	static inline uint##bits##_t vp_cursor_u##bits(struct vp_cursor *cursor)                   \
	{                                                                                          \
		uint##bits##_t value = 0;                                                          \
		struct vp_slice slice = vp_cursor_bytes(cursor, sizeof(value));                    \
                                                                                                   \
		if (slice.size)                                                                    \
			memcpy(&value, slice.bytes, sizeof(value));                                \
		return cursor->swaps ? __builtin_bswap##bits(value) : value;                       \
	}
VP_CURSOR_INTEGER(64)
VP_CURSOR_INTEGER(32)
VP_CURSOR_INTEGER(16)
#undef VP_CURSOR_INTEGER

/* Text: the next line without its newline; false at the end. */
bool vp_cursor_line(struct vp_cursor *cursor, struct vp_slice *line);
/* Text: the next word, up to one blank or tab (skipped); fails at the end. */
struct vp_slice vp_cursor_word(struct vp_cursor *cursor);
/* The bytes up to a NUL byte (skipped); fails without one. */
struct vp_slice vp_cursor_string(struct vp_cursor *cursor);
/* All remaining bytes. */
struct vp_slice vp_cursor_rest(struct vp_cursor *cursor);
/* The next word as a decimal or hexadecimal (no 0x) number; fails on anything else and on
 * overflow. */
uint64_t vp_cursor_decimal(struct vp_cursor *cursor);
uint64_t vp_cursor_hex(struct vp_cursor *cursor);

/* Value of a hexadecimal digit; -1 for other characters. */
static inline int vp_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Whether the slice equals the string `text`. */
bool vp_slice_is(struct vp_slice slice, const char *text);

#endif
