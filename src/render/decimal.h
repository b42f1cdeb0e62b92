/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as weka.core.Utils.doubleToString() writes them. */
#ifndef VP_RENDER_DECIMAL_H
#define VP_RENDER_DECIMAL_H

#include "base/buffer.h"

/* At most `digits` digits after the point, without zeros at the end. */
void vp_render_decimal(double value, int digits, struct vp_buffer *out);
/* The same in a field of `width`, the point in the same place whatever the digits. */
void vp_render_decimal_field(double value, int width, int digits, struct vp_buffer *out);

#endif
