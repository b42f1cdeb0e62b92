/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes untrusted text safe to display: names from guests, processes and files. */
#ifndef VP_BASE_TEXT_H
#define VP_BASE_TEXT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/macros.h"

/*
 * Appends `size` bytes of text, with '?' for everything that could harm a terminal or a JSON
 * reader, or mislead a human reader: control characters (C0, DEL, C1), invalid UTF-8, and
 * characters that change text direction or are invisible.
 */
void vp_text_clean(const char *text, size_t size, struct vp_buffer *buffer);
/* The same for several lines: line feeds and tabs are kept. */
void vp_text_clean_lines(const char *text, size_t size, struct vp_buffer *buffer);
/* Number of harmless bytes at the start of the text. */
size_t vp_text_clean_size(const char *text, size_t size);
/* Length of the harmful sequence at the start of a text; it is replaced by one '?'. */
size_t vp_text_unclean_size(const char *text, size_t size);
/* The result of vp_text_clean() as a new string. */
char *vp_text_cleaned(const char *text) __attribute__((returns_nonnull)) VP_MUST_CHECK;
/* Whether vp_text_clean() would not change the text. */
bool vp_text_is_clean(const char *text);

/* Appends a blank and the cleaned word, quoted for a shell if necessary. */
void vp_text_put_word(const char *word, struct vp_buffer *out);

/* Maximum length of a duration's text, with the NUL. */
#define VP_DURATION_SIZE 24
/* Formats `ns` nanoseconds with three significant digits and a unit ("0", "853 ns", "12.3 us",
 * "1.61 s"); from 1000 s on, in whole seconds. Returns `text`. */
const char *vp_text_duration(uint64_t ns, char text[VP_DURATION_SIZE]);
/* The same, from 2 minutes on in minutes, hours and days: "16 min 40 s", "2 h 5 min", "3 d 2 h". */
const char *vp_text_long_duration(uint64_t ns, char text[VP_DURATION_SIZE]);

enum { VP_TEXT_DATE_SIZE = 40 };
/* Formats a time of CLOCK_REALTIME (ns) in the reader's time zone: "2026-11-25 16:49:05 +0000". */
const char *vp_text_date(uint64_t realtime_ns, char text[VP_TEXT_DATE_SIZE]);

#endif
