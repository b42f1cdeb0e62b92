/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections of trace-cmd's files of version 7 (Documentation/trace-cmd/trace-cmd.dat.v7.5.txt), at
 * any offset of the file, optionally compressed. */
#ifndef VP_IMPORT_TRACEDAT_TRACEDAT_SECTIONS_H
#define VP_IMPORT_TRACEDAT_TRACEDAT_SECTIONS_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"

struct vp_tracedat_sections {
	const char *source; /* for error messages */
	struct vp_slice bytes;
	bool has_zstd;
	uint64_t options; /* offset of the first section of options */
};

/* Parses the header after the page size; `cursor` is over the whole file. */
struct vp_error *vp_tracedat_sections_open(const char *source, struct vp_cursor *cursor,
					   struct vp_tracedat_sections *ret) VP_MUST_CHECK;
/* A range of bytes of the file. */
struct vp_error *vp_tracedat_sections_range(const struct vp_tracedat_sections *sections,
					    uint64_t offset, uint64_t size,
					    struct vp_slice *ret) VP_MUST_CHECK;
struct vp_tracedat_section {
	uint16_t id;
	bool is_packed;
	struct vp_slice bytes; /* raw bytes of the file */
};
struct vp_error *vp_tracedat_sections_at(const struct vp_tracedat_sections *sections,
					 uint64_t offset,
					 struct vp_tracedat_section *ret) VP_MUST_CHECK;
/* Appends the next decompressed chunk, which is preceded by its sizes. False: malformed. */
bool vp_tracedat_unpack(struct vp_cursor *cursor, struct vp_buffer *out);

#endif
