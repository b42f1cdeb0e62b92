/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol names as a reader wants them. */
#ifndef VP_SYMBOL_DEMANGLE_H
#define VP_SYMBOL_DEMANGLE_H

#include "base/buffer.h"

/*
 * Appends what a C++ or Rust symbol stands for, without parameters; any other name as it is. The
 * name may come from an enemy: one that expands beyond a few kilobytes is left as it is.
 */
void vp_demangle(const char *symbol, struct vp_buffer *buffer);

/*
 * Appends `size` bytes of text with everything that could harm a terminal or a JSON reader replaced
 * by '?': control characters (C0, DEL, C1) and what is not UTF-8.
 */
void vp_text_clean(const char *text, size_t size, struct vp_buffer *buffer);

#endif
