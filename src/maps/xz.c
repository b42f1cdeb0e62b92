/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/xz.h"

#include <lzma.h>
#include <stdint.h>

enum { PIECE = 64 << 10 };
/* Memory limit of the decoder: xz -9 needs 65 MiB. */
#define MAX_MEMORY (128ULL << 20)

bool vp_xz_unpack(const void *bytes, size_t size, size_t limit, struct vp_buffer *ret)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t start = ret->size;
	lzma_ret result = lzma_stream_decoder(&stream, MAX_MEMORY, 0);

	stream.next_in = bytes;
	stream.avail_in = size;
	while (result == LZMA_OK && ret->size - start <= limit) {
		stream.next_out = vp_buffer_extend(ret, PIECE);
		stream.avail_out = PIECE;
		result = lzma_code(&stream, LZMA_FINISH);
		ret->size -= stream.avail_out;
	}
	lzma_end(&stream);
	return result == LZMA_STREAM_END && ret->size - start <= limit;
}
