/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two kinds of allocation.
 *
 * Small allocations, and those proportional to the data (a name, a row, a message), do not fail: on
 * ENOMEM they call vp_alloc_failed(), which the program defines. It prints a message and exits
 * (cmd/, the agent), or leaves with longjmp() (a process that runs for months). Nothing here
 * prints, exits or keeps state.
 *
 * The _try functions are for sizes that a file or a peer decides. They return NULL, and the caller
 * makes an error that names the file. */
#ifndef VP_BASE_ALLOC_H
#define VP_BASE_ALLOC_H

#include <stddef.h>

#include "base/macros.h"

/* `size` zeroed bytes; free() them. */
void *vp_alloc(size_t size) __attribute__((malloc, returns_nonnull)) VP_MUST_CHECK;
/* Zeroed bytes that share no cache line with other data, nor the adjacent line that the CPU
 * prefetches: for data that one thread writes all the time. free() them. */
#define VP_APART 128
void *vp_alloc_apart(size_t size) __attribute__((malloc, returns_nonnull)) VP_MUST_CHECK;
/* Resizes `old` (or NULL) to `count` items of `size` bytes each; added bytes are not zeroed. */
void *vp_realloc_array(void *old, size_t count, size_t size)
    __attribute__((returns_nonnull)) VP_MUST_CHECK;
/* New strings, to be freed: a copy, a copy of at most `size` bytes, and text formatted as by
 * printf(). */
char *vp_strdup(const char *text) __attribute__((returns_nonnull)) VP_MUST_CHECK;
char *vp_strndup(const char *text, size_t size) __attribute__((returns_nonnull)) VP_MUST_CHECK;
char *vp_format(const char *format, ...) __attribute__((returns_nonnull))
VP_PRINTF(1, 2) VP_MUST_CHECK;

/* `size` zeroed bytes, a power of two, in huge pages if large enough: for tables with random
 * access, in which most look-ups would otherwise miss the TLB. NULL if out of memory. */
void *vp_alloc_large(size_t size) VP_MUST_CHECK;

/* Like vp_realloc_array(), but returns NULL if out of memory; `old` is then unchanged. */
void *vp_realloc_try(void *old, size_t count, size_t size) VP_MUST_CHECK;

/* Defined by each program; without a definition the program traps. It must not return. */
VP_NORETURN void vp_alloc_failed(void);

#endif
