/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fetch/gzip.h"

#include <zlib.h>

#include "base/alloc.h"

/* zlib's window bits; + 16 selects the gzip header. */
enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8, PIECE = 1 << 16, INPUT_MOST = 1 << 30 };

void vp_gzip(const void *bytes, size_t size, struct vp_buffer *out)
{
	z_stream stream = {.next_in = (Bytef *)bytes};
	unsigned char piece[PIECE];
	int result;

	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		vp_alloc_failed();
	do {
		size_t most = size < INPUT_MOST ? size : INPUT_MOST;
		if (!stream.avail_in) {
			stream.avail_in = (uInt)most;
			size -= most;
		}
		stream.next_out = piece;
		stream.avail_out = sizeof(piece);
		result = deflate(&stream, size ? Z_NO_FLUSH : Z_FINISH);
		vp_buffer_append(out, piece, sizeof(piece) - stream.avail_out);
	} while (result != Z_STREAM_END);
	deflateEnd(&stream);
}
