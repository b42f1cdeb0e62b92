/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/characters.h"

void vp_put_character(struct vp_buffer *text, uint32_t c)
{
	char bytes[4];
	size_t size = 0;

	if (c < ' ' || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = '?';
	if (c < 0x80) {
		bytes[size++] = (char)c;
	} else if (c < 0x800) {
		bytes[size++] = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			bytes[size++] = (char)(0xe0 | c >> 12);
		} else {
			bytes[size++] = (char)(0xf0 | c >> 18);
			bytes[size++] = (char)(0x80 | (c >> 12 & 0x3f));
		}
		bytes[size++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		bytes[size++] = (char)(0x80 | (c & 0x3f));
	vp_buffer_append(text, bytes, size);
}
