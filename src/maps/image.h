/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and build-id of an ELF file and its separate debug file: from symbol tables (also
 * compressed in .gnu_debugdata), a Go program's own table and the PLT. Functions that are only in
 * the unwind tables have no name. Debug files of prelinked files are not supported.
 */
#ifndef VP_MAPS_IMAGE_H
#define VP_MAPS_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/format.h"

/* Larger images are rejected, as an attempt to exhaust memory. */
#define VP_IMAGE_MAX_BYTES ((uint64_t)16 << 30)

struct vp_image_symbol {
	uint64_t offset; /* in the file; virtual addresses are converted */
	uint64_t size;   /* 0: unknown */
	uint32_t name;   /* offset in names.bytes, NUL-terminated; empty: unknown */
	uint8_t rank;    /* preference among several names of one address: the lowest wins */
};

struct vp_image {
	struct vp_build_id build_id;
	VP_VEC(struct vp_image_symbol) symbols; /* by offset, at most one per offset */
	struct vp_buffer names;
	bool has_symtab; /* the file or its debug file has a full symbol table, not only exported
			    symbols */
};

/* Folders to search: PREFIX/DIR/.build-id/…; NULL: the default. */
struct vp_image_locations {
	const char *root;       /* prefix of every path; default "" */
	const char *debug_dir;  /* default "/usr/lib/debug" */
	const char *debug_file; /* tried first, without the prefix; or NULL */
};

/* Reads the ELF file open at `fd`; `path` (inside locations->root) names it and finds its debug
 * file.
 */
struct vp_error *vp_image_read(int fd, const char *path, const struct vp_image_locations *locations,
			       struct vp_image *image) VP_MUST_CHECK;
/* Reads an ELF image in memory, such as the vDSO. */
struct vp_error *vp_image_read_memory(const void *bytes, size_t size, const char *label,
				      struct vp_image *image) VP_MUST_CHECK;
/* Reads only the build-id; an unknown build-id is not an error. */
struct vp_error *vp_image_read_build_id(int fd, const char *path,
					struct vp_build_id *id) VP_MUST_CHECK;
void vp_image_deinit(struct vp_image *image);

/* The symbol's name, valid as long as the image. */
static inline const char *vp_image_symbol_name(const struct vp_image *image,
					       const struct vp_image_symbol *symbol)
{
	return image->names.bytes + symbol->name;
}

#endif
