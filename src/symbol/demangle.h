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

#endif
