/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the wire format of protocol buffers, field by field. */
#ifndef VP_EXPORT_PROTOBUF_H
#define VP_EXPORT_PROTOBUF_H

#include "base/buffer.h"

void vp_pb_varint(struct vp_buffer *out, uint64_t value);
/* Fields by number: a varint, a fixed 64-bit number, bytes, and a nested message. */
void vp_pb_count(struct vp_buffer *out, uint32_t field, uint64_t value);
void vp_pb_fixed64(struct vp_buffer *out, uint32_t field, uint64_t value);
void vp_pb_message(struct vp_buffer *out, uint32_t field, const struct vp_buffer *message);
/* Untrusted text, cleaned (base/text.h). */
void vp_pb_text(struct vp_buffer *out, uint32_t field, const char *text);

#endif
