/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/perf_unpack.h"

#include <zstd.h>

#include "base/alloc.h"

struct vp_perf_unpacker {
	ZSTD_DStream *stream;
	char bytes[1 << 17]; /* zstd's maximum block size */
};

struct vp_perf_unpacker *vp_perf_unpacker_new(void)
{
	struct vp_perf_unpacker *unpacker = vp_alloc(sizeof(*unpacker));

	unpacker->stream = ZSTD_createDStream();
	if (!unpacker->stream)
		vp_alloc_failed();
	return unpacker;
}

void vp_perf_unpacker_free(struct vp_perf_unpacker *unpacker)
{
	if (!unpacker)
		return;
	ZSTD_freeDStream(unpacker->stream);
	free(unpacker);
}

bool vp_perf_unpack(struct vp_perf_unpacker *unpacker, struct vp_slice piece, size_t most,
		    struct vp_buffer *out)
{
	ZSTD_inBuffer in = {piece.bytes, piece.size, 0};

	for (bool full = true; (in.pos < in.size || full) && out->size <= most;) {
		ZSTD_outBuffer next = {unpacker->bytes, sizeof(unpacker->bytes), 0};
		if (ZSTD_isError(ZSTD_decompressStream(unpacker->stream, &next, &in)))
			return false;
		vp_buffer_append(out, unpacker->bytes, next.pos);
		full = next.pos == next.size;
	}
	return true;
}
