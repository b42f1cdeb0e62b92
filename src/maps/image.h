/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Symbols and build-id of an ELF file, its separate debug file included.
 *
 * Not read: prelinked debug files, and the compressed mini symbol table (.gnu_debugdata) that
 * Fedora ships; an image that has only that one says so in `has_debugdata`.
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

/* No image is larger: what is was made to exhaust whoever reads it. */
#define VP_IMAGE_MAX_BYTES ((uint64_t)16 << 30)

struct vp_image_symbol {
	uint64_t offset; /* in the file, whatever the file's virtual addresses are */
	uint64_t size;   /* 0: unknown */
	uint32_t name;   /* where in names.bytes; terminated */
	uint8_t rank;    /* which of several names for one place is the best: the lowest */
};

struct vp_image {
	struct vp_build_id build_id;
	VP_VEC(struct vp_image_symbol) symbols; /* by offset, one for each */
	struct vp_buffer names;
	bool
	    has_symtab; /* of its own or of its debug file: all functions, not only exported ones */
	bool has_debugdata; /* there is a .gnu_debugdata, and no better symbol table */
};

/* Where files are looked for: PREFIX/DIR/.build-id/…; either may be NULL for its usual value. */
struct vp_image_locations {
	const char *root;       /* put before every path; "" */
	const char *debug_dir;  /* "/usr/lib/debug" */
	const char *debug_file; /* to be tried first, as it is; or NULL */
};

/* Reads the ELF file open at `fd`; `path` (inside places->root) names it and finds its debug file.
 */
struct vp_error *vp_image_read(int fd, const char *path, const struct vp_image_locations *locations,
			       struct vp_image *image) VP_MUST_CHECK;
/* Reads an ELF image in memory, such as the vDSO. */
struct vp_error *vp_image_read_memory(const void *bytes, size_t size, const char *label,
				      struct vp_image *image) VP_MUST_CHECK;
/* Reads only the build-id; an unknown one is not an error. */
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
