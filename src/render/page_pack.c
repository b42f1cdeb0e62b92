/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encodes many numbers in little space: LEB128, then base64 (RFC 4648). */
#include "base/base64.h"
#include "base/buffer.h"
#include "base/json.h"
#include "render/page_parts.h"

void vp_page_pack(struct vp_buffer *packed, uint64_t number)
{
	uint8_t bytes[10];
	size_t size = 0;

	do {
		bytes[size] = (uint8_t)(number & 0x7f) | (number >> 7 ? 0x80 : 0);
		number >>= 7;
		size++;
	} while (number);
	vp_buffer_append(packed, bytes, size);
}

void vp_page_put_packed(struct vp_json *json, const char *key, struct vp_buffer *packed)
{
	struct vp_buffer text = {0};

	vp_buffer_string(&text, "\"");
	vp_base64_append(&text, packed->bytes, packed->size);
	vp_buffer_string(&text, "\"");
	vp_json_raw(json, key, vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	vp_buffer_deinit(packed);
}
