/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/buffer.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"

void vp_buffer_deinit(struct vp_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct vp_buffer){0};
}

/* How much room is made for `more` bytes: twice as much as there was, or what is needed. */
static size_t room_for(const struct vp_buffer *buffer, size_t more)
{
	size_t room = buffer->room ? 2 * buffer->room : 256;
	size_t needed = more < SIZE_MAX - buffer->size ? buffer->size + more : SIZE_MAX;

	return room < needed ? needed : room;
}

static void buffer_reserve(struct vp_buffer *buffer, size_t more)
{
	if (buffer->room - buffer->size >= more)
		return;
	size_t room = room_for(buffer, more);
	buffer->bytes = vp_realloc_array(buffer->bytes, room, 1);
	buffer->room = room;
}

void *vp_buffer_try_extend(struct vp_buffer *buffer, size_t size)
{
	if (buffer->room - buffer->size < size) {
		size_t room = room_for(buffer, size);
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
	void *place = buffer->bytes + buffer->size;
	buffer->size += size;
	return place;
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

/* Of each number below 100 both digits. */
static const char pairs[] = "0001020304050607080910111213141516171819"
			    "2021222324252627282930313233343536373839"
			    "4041424344454647484950515253545556575859"
			    "6061626364656667686970717273747576777879"
			    "8081828384858687888990919293949596979899";

char *vp_put_count(char *at, uint64_t number)
{
	/* At least as many digits as numbers of so many bits have. */
	static const uint64_t tens[] = {0,
					10,
					100,
					1000,
					10000,
					100000,
					1000000,
					10000000,
					100000000,
					1000000000,
					10000000000,
					100000000000,
					1000000000000,
					10000000000000,
					100000000000000,
					1000000000000000,
					10000000000000000,
					100000000000000000,
					1000000000000000000,
					10000000000000000000U};

	if (number < 10) {
		*at = (char)('0' + number);
		return at + 1;
	}
	unsigned bits = 64 - (unsigned)__builtin_clzll(number);
	unsigned digits = bits * 1233 >> 12; /* by log10(2): as many, or one too few */
	char *end = at + digits + (number >= tens[digits]);
	for (at = end; number >= 10; number /= 100)
		memcpy(at -= 2, pairs + 2 * (number % 100), 2);
	if (number)
		at[-1] = (char)('0' + number);
	return end;
}

void vp_buffer_count(struct vp_buffer *buffer, uint64_t number)
{
	vp_buffer_end(buffer, vp_put_count(vp_buffer_room(buffer, VP_PUT_COUNT), number));
}

void vp_buffer_padded(struct vp_buffer *buffer, uint64_t number, size_t width, char with)
{
	enum { MOST = 24 };
	char digits[2 * MOST]; /* and as many behind them: copied are always so many, which is no
				  call */
	size_t at = MOST;

	memset(digits, with, sizeof(digits));
	for (; number >= 10; number /= 100)
		memcpy(digits + (at -= 2), pairs + 2 * (number % 100), 2);
	if (number || at == MOST)
		digits[--at] = (char)('0' + number);
	if (MOST - at < width)
		at = width < MOST ? MOST - width : 0;
	buffer_reserve(buffer, MOST);
	memcpy(buffer->bytes + buffer->size, digits + at, MOST);
	buffer->size += MOST - at;
}
