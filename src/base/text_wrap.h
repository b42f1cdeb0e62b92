/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wraps text for a terminal at blanks. */
#ifndef VP_BASE_TEXT_WRAP_H
#define VP_BASE_TEXT_WRAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/*
 * Appends lines of UTF-8 text, wrapped to `width` characters where blanks allow it; 0: no limit.
 * Wraps all lines, or only notes, which begin with '#' or '('. Continuation lines of a note start
 * with its sign; those of other lines are indented to the line's text.
 */
void vp_text_wrap(const struct vp_buffer *text, size_t width, bool all, struct vp_buffer *out);

#endif
