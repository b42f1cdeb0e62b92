/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/tracedat/tracedat_sections.h"

#include <zstd.h>

#include "base/alloc.h"

/* trace-cmd compresses a few pages at a time; a section of formats has a few megabytes. */
enum { MAX_UNPACKED = 64 * 1024 * 1024 };

struct vp_error *vp_tracedat_sections_open(const char *source, struct vp_cursor *cursor,
					   struct vp_tracedat_sections *ret)
{
	*ret = (struct vp_tracedat_sections){
	    .source = source, .bytes = {cursor->start, (size_t)(cursor->end - cursor->start)}};
	struct vp_slice packing = vp_cursor_string(cursor);
	vp_cursor_string(cursor); /* version */
	ret->options = vp_cursor_u64(cursor);
	if (!vp_cursor_ok(cursor))
		return vp_error_new("'%s' is damaged: it ends within its first words", source);
	ret->has_zstd = vp_slice_is(packing, "zstd");
	if (!ret->has_zstd && !vp_slice_is(packing, "none"))
		return vp_error_new("'%s' uses a compression other than zstd: 'trace-cmd convert "
				    "--compression none -i FILE -o NEW' decompresses it",
				    source);
	return NULL;
}

struct vp_error *vp_tracedat_sections_range(const struct vp_tracedat_sections *sections,
					    uint64_t offset, uint64_t size, struct vp_slice *ret)
{
	struct vp_slice bytes = sections->bytes;

	if (offset > bytes.size || size > bytes.size - offset)
		return vp_error_new("'%s' is damaged: it is shorter than its headers claim",
				    sections->source);
	*ret = (struct vp_slice){bytes.bytes + offset, (size_t)size};
	return NULL;
}

struct vp_error *vp_tracedat_sections_at(const struct vp_tracedat_sections *sections,
					 uint64_t offset, struct vp_tracedat_section *ret)
{
	enum { HEAD = 16, IS_PACKED = 1 };
	struct vp_slice head;

	VP_TRY(vp_tracedat_sections_range(sections, offset, HEAD, &head));
	struct vp_cursor cursor = vp_cursor_of(head.bytes, head.size);
	ret->id = vp_cursor_u16(&cursor);
	ret->is_packed = vp_cursor_u16(&cursor) & IS_PACKED;
	vp_cursor_u32(&cursor); /* description */
	return vp_tracedat_sections_range(sections, offset + HEAD, vp_cursor_u64(&cursor),
					  &ret->bytes);
}

bool vp_tracedat_unpack(struct vp_cursor *cursor, struct vp_buffer *out)
{
	uint32_t packed = vp_cursor_u32(cursor), size = vp_cursor_u32(cursor);
	struct vp_slice piece = vp_cursor_bytes(cursor, packed);

	if (!vp_cursor_ok(cursor) || size > MAX_UNPACKED)
		return false;
	char *bytes = vp_alloc(size ? size : 1);
	size_t unpacked = ZSTD_decompress(bytes, size, piece.bytes, piece.size);
	bool good = !ZSTD_isError(unpacked) && unpacked == size;
	if (good)
		vp_buffer_append(out, bytes, size);
	free(bytes);
	return good;
}
