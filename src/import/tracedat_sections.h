/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How version 7 of trace-cmd's files (Documentation/trace-cmd/trace-cmd.dat.v7.5.txt) is divided:
 * sections at any place of the file, whose bytes may be compressed.
 */
#ifndef VP_IMPORT_TRACEDAT_SECTIONS_H
#define VP_IMPORT_TRACEDAT_SECTIONS_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"

struct vp_tracedat_sections {
	const char *source; /* for errors */
	struct vp_slice bytes;
	bool has_zstd;
	uint64_t options; /* where the first section of options is */
};

/* Takes what follows the size of a page; `cursor` is of the whole file. */
struct vp_error *vp_tracedat_sections_open(const char *source, struct vp_cursor *cursor,
					   struct vp_tracedat_sections *ret) VP_MUST_CHECK;
/* Bytes of the file. */
struct vp_error *vp_tracedat_sections_range(const struct vp_tracedat_sections *sections,
					    uint64_t offset, uint64_t size,
					    struct vp_slice *ret) VP_MUST_CHECK;
struct vp_tracedat_section {
	uint16_t id;
	bool is_packed;
	struct vp_slice bytes; /* as they are in the file */
};
struct vp_error *vp_tracedat_sections_at(const struct vp_tracedat_sections *sections,
					 uint64_t offset,
					 struct vp_tracedat_section *ret) VP_MUST_CHECK;
/* Appends the next compressed piece, with its sizes before it. False if it is not one. */
bool vp_tracedat_unpack(struct vp_cursor *cursor, struct vp_buffer *out);

#endif
