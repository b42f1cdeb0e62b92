/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and build-id of an ELF file, its separate debug file included: from symbol tables, also
 * a compressed one in .gnu_debugdata, from a Go program's own table, from the PLT. Functions that
 * only the unwind tables have are there without a name.
 *
 * Not read: prelinked debug files.
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
	uint32_t name;   /* where in names.bytes; terminated; empty: unknown */
	uint8_t rank;    /* which of several names for one place is the best: the lowest */
};

struct vp_image {
	struct vp_build_id build_id;
	VP_VEC(struct vp_image_symbol) symbols; /* by offset, one for each */
	struct vp_buffer names;
	bool has_symtab; /* its own or its debug file's: all functions, not only exported ones */
};

/* Where files are looked for: PREFIX/DIR/.build-id/…; either may be NULL for its usual value. */
struct vp_image_locations {
	const char *root;       /* put before every path; "" */
	const char *debug_dir;  /* "/usr/lib/debug" */
	const char *debug_file; /* to be tried first, as it is; or NULL */
};

/* Reads the ELF file open at `fd`; `path` (inside locations->root) names it and finds its debug
 * file.
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
