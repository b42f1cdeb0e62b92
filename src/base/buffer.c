/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/buffer.h"

#include <endian.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"

void vp_buffer_deinit(struct vp_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct vp_buffer){0};
}

/* New capacity for `more` bytes: doubled, or as large as needed. */
static size_t buffer_room_for(const struct vp_buffer *buffer, size_t more)
{
	size_t room = buffer->room ? 2 * buffer->room : 256;
	size_t needed = more < SIZE_MAX - buffer->size ? buffer->size + more : SIZE_MAX;

	return room < needed ? needed : room;
}

static void buffer_reserve(struct vp_buffer *buffer, size_t more)
{
	if (buffer->room - buffer->size >= more)
		return;
	size_t room = buffer_room_for(buffer, more);
	buffer->bytes = vp_realloc_array(buffer->bytes, room, 1);
	buffer->room = room;
}

void *vp_buffer_try_extend(struct vp_buffer *buffer, size_t size)
{
	if (buffer->room - buffer->size < size) {
		size_t room = buffer_room_for(buffer, size);
		char *bytes = vp_realloc_try(buffer->bytes, room, 1);
		if (!bytes)
			return NULL;
		buffer->bytes = bytes;
		buffer->room = room;
	}
	buffer->size += size;
	return buffer->bytes + buffer->size - size;
}

void *vp_buffer_extend(struct vp_buffer *buffer, size_t size)
{
	buffer_reserve(buffer, size);
	void *start = buffer->bytes + buffer->size;
	buffer->size += size;
	return start;
}

void vp_buffer_printf(struct vp_buffer *buffer, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	buffer_reserve(buffer, (size_t)length + 1);
	vsnprintf(buffer->bytes + buffer->size, (size_t)length + 1, format, again);
	va_end(again);
	buffer->size += (size_t)length;
}

const char *vp_buffer_text(struct vp_buffer *buffer)
{
	buffer_reserve(buffer, 1);
	buffer->bytes[buffer->size] = 0;
	return buffer->bytes;
}

/*
 * The eight digits of a number below 10^8, the first in the lowest byte. The number is halved
 * repeatedly into words of two, four and eight digits; divisions by 100 or 10 of small numbers are
 * multiplications and shifts.
 */
static uint64_t eight_digits(uint32_t number)
{
	uint64_t fours = number / 10000 | (uint64_t)(number % 10000) << 32;
	uint64_t hundreds = (fours * 10486 >> 20) & 0x7f0000007f;
	uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
	uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;

	return (tens | (twos - 10 * tens) << 8) + 0x3030303030303030;
}

static char *put_eight(char *at, uint64_t digits)
{
	digits = htole64(digits);
	memcpy(at, &digits, sizeof(digits));
	return at + sizeof(digits);
}

/* Number of zeros before the first nonzero digit. */
static unsigned zeros_of(uint64_t digits)
{
	uint64_t others = (digits ^ 0x3030303030303030) | 1ULL << 56;

	return (unsigned)__builtin_ctzll(others) / 8;
}

enum { EIGHT_DIGITS = 100000000 };

char *vp_put_count(char *at, uint64_t number)
{
	if (number < 10) {
		*at = (char)('0' + number);
		return at + 1;
	}
	if (number >= EIGHT_DIGITS)
		return put_eight(vp_put_count(at, number / EIGHT_DIGITS),
				 eight_digits((uint32_t)(number % EIGHT_DIGITS)));
	uint64_t digits = eight_digits((uint32_t)number);
	unsigned zeros = zeros_of(digits);

	return put_eight(at, digits >> 8 * zeros) - zeros;
}

char *vp_put_nine(char *at, uint32_t number)
{
	at = put_eight(at, eight_digits(number / 10));
	*at = (char)('0' + number % 10);
	return at + 1;
}

void vp_buffer_count(struct vp_buffer *buffer, uint64_t number)
{
	vp_buffer_end(buffer, vp_put_count(vp_buffer_room(buffer, VP_PUT_COUNT), number));
}

char *vp_put_padded(char *to, uint64_t number, size_t width, char with)
{
	if (number >= EIGHT_DIGITS)
		return put_eight(
		    vp_put_padded(to, number / EIGHT_DIGITS, width > 8 ? width - 8 : 0, with),
		    eight_digits((uint32_t)(number % EIGHT_DIGITS)));
	uint64_t digits = eight_digits((uint32_t)number);
	unsigned zeros = zeros_of(digits), size = 8 - zeros;
	size_t before = width > size ? width - size : 0;

	memset(to, with, VP_PUT_PADDED - 8); /* constant size: no function call */
	return put_eight(to + before, digits >> 8 * zeros) - zeros;
}

void vp_buffer_padded(struct vp_buffer *buffer, uint64_t number, size_t width, char with)
{
	char *at = vp_buffer_room(buffer, VP_PUT_PADDED);

	vp_buffer_end(buffer, vp_put_padded(at, number, width, with));
}
