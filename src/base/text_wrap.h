/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text for a terminal: long lines are divided at blanks. */
#ifndef VP_BASE_TEXT_WRAP_H
#define VP_BASE_TEXT_WRAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/*
 * Appends lines of UTF-8 text, at most `width` characters wide where blanks allow it; 0: any width.
 * Only notes, which begin with '#' or '(', are divided, or all lines. The rest of a note begins
 * with its sign, that of another line where the line's text begins.
 */
void vp_text_wrap(const struct vp_buffer *text, size_t width, bool all, struct vp_buffer *out);

#endif
