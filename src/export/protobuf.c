/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/protobuf.h"

#include "base/text.h"

enum { VARINT = 0, FIXED64 = 1, SIZED = 2 };

void vp_pb_varint(struct vp_buffer *out, uint64_t value)
{
	unsigned char bytes[10];
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[size++] = (unsigned char)(value | 0x80);
	bytes[size++] = (unsigned char)value;
	vp_buffer_append(out, bytes, size);
}

static void protobuf_put_key(struct vp_buffer *out, uint32_t field, uint32_t type)
{
	vp_pb_varint(out, (uint64_t)field << 3 | type);
}

void vp_pb_count(struct vp_buffer *out, uint32_t field, uint64_t value)
{
	protobuf_put_key(out, field, VARINT);
	vp_pb_varint(out, value);
}

void vp_pb_fixed64(struct vp_buffer *out, uint32_t field, uint64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	protobuf_put_key(out, field, FIXED64);
	vp_buffer_append(out, bytes, sizeof(bytes));
}

static void pb_bytes(struct vp_buffer *out, uint32_t field, const void *bytes, size_t size)
{
	protobuf_put_key(out, field, SIZED);
	vp_pb_varint(out, size);
	vp_buffer_append(out, bytes, size);
}

void vp_pb_message(struct vp_buffer *out, uint32_t field, const struct vp_buffer *message)
{
	pb_bytes(out, field, message->bytes, message->size);
}

void vp_pb_text(struct vp_buffer *out, uint32_t field, const char *text)
{
	size_t size = strlen(text);
	struct vp_buffer clean = {0};

	if (vp_text_clean_size(text, size) == size) {
		pb_bytes(out, field, text, size);
		return;
	}
	vp_text_clean(text, size, &clean);
	vp_pb_message(out, field, &clean);
	vp_buffer_deinit(&clean);
}
