/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decompresses perf record -z: a zstd stream, split into records. */
#ifndef VP_IMPORT_PERF_PERF_UNPACK_H
#define VP_IMPORT_PERF_PERF_UNPACK_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"

struct vp_perf_unpacker;

struct vp_perf_unpacker *vp_perf_unpacker_new(void) VP_MUST_CHECK;
void vp_perf_unpacker_free(struct vp_perf_unpacker *unpacker);
/* Appends the contents of the stream's next part, until `out` has more than `most` bytes. False:
 * invalid data; everything before it was appended. */
bool vp_perf_unpack(struct vp_perf_unpacker *unpacker, struct vp_slice piece, size_t most,
		    struct vp_buffer *out);

#endif
