/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wire format of protocol buffers, as far as writing needs it: a field after the other. */
#ifndef VP_EXPORT_PROTOBUF_H
#define VP_EXPORT_PROTOBUF_H

#include "base/buffer.h"

void vp_pb_varint(struct vp_buffer *out, uint64_t value);
/* Fields by their number: a number, one of eight bytes, bytes, and a message made before. */
void vp_pb_count(struct vp_buffer *out, uint32_t field, uint64_t value);
void vp_pb_fixed64(struct vp_buffer *out, uint32_t field, uint64_t value);
void vp_pb_message(struct vp_buffer *out, uint32_t field, const struct vp_buffer *message);
/* Text that others made, cleaned (base/text.h). */
void vp_pb_text(struct vp_buffer *out, uint32_t field, const char *text);

#endif
