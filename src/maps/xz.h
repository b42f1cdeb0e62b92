/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data compressed by xz, such as the small symbol table in .gnu_debugdata. */
#ifndef VP_MAPS_XZ_H
#define VP_MAPS_XZ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Appends the contents. False if they are damaged or more than `limit` bytes; the buffer may have
 * some of them then. */
bool vp_xz_unpack(const void *bytes, size_t size, size_t limit, struct vp_buffer *ret);

#endif
