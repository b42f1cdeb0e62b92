/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that is there or ends the program with a sentence: vperf has no useful way on without it.
 * Sizes that come from outside are bounded before they get here.
 */
#ifndef VP_BASE_ALLOC_H
#define VP_BASE_ALLOC_H

#include <stddef.h>

#include "base/macros.h"

void *vp_alloc(size_t size) __attribute__((malloc, returns_nonnull)) VP_MUST_CHECK; /* zeroed */
void *vp_realloc_array(void *old, size_t count, size_t size)
    __attribute__((returns_nonnull)) VP_MUST_CHECK;
char *vp_strdup(const char *text) __attribute__((returns_nonnull)) VP_MUST_CHECK;
char *vp_strndup(const char *text, size_t size) __attribute__((returns_nonnull)) VP_MUST_CHECK;
char *vp_format(const char *format, ...) __attribute__((returns_nonnull))
VP_PRINTF(1, 2) VP_MUST_CHECK;
VP_NORETURN void vp_alloc_failed(void);

#endif
