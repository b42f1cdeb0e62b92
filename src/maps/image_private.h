/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files that read an image. */
#ifndef VP_MAPS_IMAGE_PRIVATE_H
#define VP_MAPS_IMAGE_PRIVATE_H

#include "base/cursor.h"
#include "maps/elf_file.h"
#include "maps/image.h"

/* Ranks of symbols from tables other than symbol tables, after all of those. */
enum { VP_IMAGE_RANK_DERIVED = 128 };

/* Adds a symbol; its name is cut at a length that no function has. */
void vp_image_add(struct vp_image *image, const struct vp_image_symbol *symbol,
		  struct vp_slice name);
/* Sorts the symbols by offset and keeps the best one of each. */
void vp_image_sort(struct vp_image *image);

/* Adds the functions in a Go program's own table. */
void vp_image_add_go(struct vp_image *image, const struct vp_elf_file *file);
/* Adds "NAME@plt" for the code that jumps to functions of other files. */
void vp_image_add_plt(struct vp_image *image, const struct vp_elf_file *file);
/*
 * Adds, without a name, the functions of the unwind tables, as far as no symbol covers them. The
 * symbols are sorted before and after it. A symbol without a size gets that of its function.
 */
void vp_image_add_extents(struct vp_image *image, const struct vp_elf_file *file);
#endif
