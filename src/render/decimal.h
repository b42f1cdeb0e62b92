/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats numbers like weka.core.Utils.doubleToString(). */
#ifndef VP_RENDER_DECIMAL_H
#define VP_RENDER_DECIMAL_H

#include "base/buffer.h"

/* At most `digits` digits after the point, without trailing zeros. */
void vp_render_decimal(double value, int digits, struct vp_buffer *out);
/* The same in a field of `width`, with the decimal points aligned. */
void vp_render_decimal_field(double value, int width, int digits, struct vp_buffer *out);

#endif
