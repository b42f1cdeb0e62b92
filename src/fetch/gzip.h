/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_FETCH_GZIP_H
#define VP_FETCH_GZIP_H

#include <stddef.h>

#include "base/buffer.h"

/* Appends the bytes compressed in gzip format. */
void vp_gzip(const void *bytes, size_t size, struct vp_buffer *out);

#endif
