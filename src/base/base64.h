/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Base64 with padding (RFC 4648). */
#ifndef VP_BASE_BASE64_H
#define VP_BASE_BASE64_H

#include <stddef.h>

#include "base/buffer.h"

void vp_base64_append(struct vp_buffer *text, const void *bytes, size_t size);

#endif
