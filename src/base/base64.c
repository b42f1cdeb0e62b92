/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/base64.h"

#include <stdint.h>

void vp_base64_append(struct vp_buffer *text, const void *bytes, size_t size)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *from = bytes;

	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t word = (uint32_t)from[i] << 16 |
				(left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				(left > 2 ? from[i + 2] : 0);
		const char group[4] = {digits[word >> 18], digits[word >> 12 & 63],
				       left > 1 ? digits[word >> 6 & 63] : '=',
				       left > 2 ? digits[word & 63] : '='};
		vp_buffer_append(text, group, sizeof(group));
	}
}
