/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encodes many numbers in little space: LEB128, then base64 (RFC 4648). */
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

static void put_base64(const struct vp_buffer *packed, struct vp_buffer *text)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *bytes = (const uint8_t *)packed->bytes;

	for (size_t i = 0; i < packed->size; i += 3) {
		size_t left = packed->size - i;
		uint32_t word = (uint32_t)bytes[i] << 16 |
				(left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				(left > 2 ? bytes[i + 2] : 0);
		const char group[4] = {digits[word >> 18], digits[word >> 12 & 63],
				       left > 1 ? digits[word >> 6 & 63] : '=',
				       left > 2 ? digits[word & 63] : '='};
		vp_buffer_append(text, group, sizeof(group));
	}
}

void vp_page_put_packed(struct vp_json *json, const char *key, struct vp_buffer *packed)
{
	struct vp_buffer text = {0};

	vp_buffer_string(&text, "\"");
	put_base64(packed, &text);
	vp_buffer_string(&text, "\"");
	vp_json_raw(json, key, vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	vp_buffer_deinit(packed);
}
