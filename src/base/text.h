/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text that others made, before it is shown: names of guests, of their processes, of files. */
#ifndef VP_BASE_TEXT_H
#define VP_BASE_TEXT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/macros.h"

/*
 * Appends `size` bytes of text with everything that could harm a terminal or a JSON reader, or
 * mislead whoever reads it, replaced by '?': control characters (C0, DEL, C1), what is not UTF-8,
 * and characters that change the direction of others or are not shown.
 */
void vp_text_clean(const char *text, size_t size, struct vp_buffer *buffer);
/* The same of several lines: line feeds and tabs stay. */
void vp_text_clean_lines(const char *text, size_t size, struct vp_buffer *buffer);
/* How many of the bytes, from the first on, do no harm. */
size_t vp_text_clean_size(const char *text, size_t size);
/* Length of the harmful sequence at the start of a text: one '?' replaces that many bytes. */
size_t vp_text_unclean_size(const char *text, size_t size);
/* vp_text_clean() as a string of its own. */
char *vp_text_cleaned(const char *text) __attribute__((returns_nonnull)) VP_MUST_CHECK;
/* Whether the above would leave it as it is. */
bool vp_text_is_clean(const char *text);

/* A blank and a word of a shell's command, cleaned: quoted unless it is plain. */
void vp_text_put_word(const char *word, struct vp_buffer *out);

/* Longest text of a duration, with its NUL. */
#define VP_DURATION_SIZE 24
/*
 * Writes `ns` nanoseconds as people read them: three significant digits and a unit ("0", "853 ns",
 * "12.3 us", "1.61 s"); from 1000 s on, whole seconds. Returns `text`.
 */
const char *vp_text_duration(uint64_t ns, char text[VP_DURATION_SIZE]);

enum { VP_TEXT_DATE_SIZE = 40 };
/* "2026-11-25 16:49:05 +0000": an instant of CLOCK_REALTIME, ns, in the reader's time zone. */
const char *vp_text_date(uint64_t realtime_ns, char text[VP_TEXT_DATE_SIZE]);

#endif
