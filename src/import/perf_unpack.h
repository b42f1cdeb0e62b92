/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decompresses perf record -z: one zstd stream, in pieces, each of which is a record. */
#ifndef VP_IMPORT_PERF_UNPACK_H
#define VP_IMPORT_PERF_UNPACK_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"

struct vp_perf_unpacker;

struct vp_perf_unpacker *vp_perf_unpacker_new(void) VP_MUST_CHECK;
void vp_perf_unpacker_free(struct vp_perf_unpacker *unpacker);
/* Appends what is in the stream's next piece, until `out` has more than `most` bytes. False: it is
 * not what zstd wrote there; what is before that is appended. */
bool vp_perf_unpack(struct vp_perf_unpacker *unpacker, struct vp_slice piece, size_t most,
		    struct vp_buffer *out);

#endif
