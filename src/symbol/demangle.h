/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Demangles symbol names. */
#ifndef VP_SYMBOL_DEMANGLE_H
#define VP_SYMBOL_DEMANGLE_H

#include "base/buffer.h"

/* Appends the demangled C++ or Rust name without parameters; other names unchanged. Names are
 * untrusted: one that expands to more than a few kilobytes is appended unchanged. */
void vp_demangle(const char *symbol, struct vp_buffer *buffer);

#endif
