/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, CACHE_LINE = 64 };

__attribute__((weak)) void vp_alloc_failed(void)
{
	__builtin_trap();
}

void *vp_realloc_try(void *old, size_t count, size_t size)
{
	size_t bytes;

	/* Overflow, or larger than any object can be. */
	if (__builtin_mul_overflow(count ? count : 1, size, &bytes) || bytes > PTRDIFF_MAX)
		return NULL;
	return realloc(old, bytes ? bytes : 1);
}

void *vp_alloc(size_t size)
{
	void *memory = calloc(1, size ? size : 1);
	if (!memory)
		vp_alloc_failed();
	return memory;
}

void *vp_alloc_apart(size_t size)
{
	size_t whole = size < SIZE_MAX - VP_APART ? (size / VP_APART + 1) * VP_APART : 0;
	void *memory = whole ? aligned_alloc(VP_APART, whole) : NULL;

	if (!memory)
		vp_alloc_failed();
	return memset(memory, 0, whole);
}

void *vp_alloc_large(size_t size)
{
	bool large = size >= HUGE_PAGE;
	void *memory = aligned_alloc(large ? HUGE_PAGE : CACHE_LINE, size);

	if (!memory)
		return NULL;
	if (large)
		madvise(memory, size, MADV_HUGEPAGE);
	return memset(memory, 0, size);
}

void *vp_realloc_array(void *old, size_t count, size_t size)
{
	void *memory = vp_realloc_try(old, count, size);
	if (!memory)
		vp_alloc_failed();
	return memory;
}

char *vp_strdup(const char *text)
{
	return vp_strndup(text, strlen(text));
}

char *vp_strndup(const char *text, size_t size)
{
	/* An empty slice may have a null pointer. */
	char *copy = strndup(size ? text : "", size);
	if (!copy)
		vp_alloc_failed();
	return copy;
}

char *vp_format(const char *format, ...)
{
	char *text;
	va_list args;
	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		vp_alloc_failed();
	return text;
}
