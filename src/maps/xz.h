/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decompresses xz data, such as the small symbol table in .gnu_debugdata. */
#ifndef VP_MAPS_XZ_H
#define VP_MAPS_XZ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Appends the decompressed contents. False: damaged, or more than `limit` bytes; `ret` may have a
 * part. */
bool vp_xz_unpack(const void *bytes, size_t size, size_t limit, struct vp_buffer *ret);

#endif
