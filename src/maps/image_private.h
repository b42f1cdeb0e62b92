/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions shared by the files that read an image. */
#ifndef VP_MAPS_IMAGE_PRIVATE_H
#define VP_MAPS_IMAGE_PRIVATE_H

#include "base/cursor.h"
#include "maps/elf_file.h"
#include "maps/image.h"

/* Symbols from other sources rank after those of symbol tables. */
enum { VP_IMAGE_RANK_DERIVED = 128 };

/* Adds a symbol; names of excessive length are truncated. */
void vp_image_add(struct vp_image *image, const struct vp_image_symbol *symbol,
		  struct vp_slice name);
/* Sorts the symbols by offset and keeps the best-ranked one per offset. */
void vp_image_sort(struct vp_image *image);

/* Adds the functions of a Go program's own table. */
void vp_image_add_go(struct vp_image *image, const struct vp_elf_file *file);
/* Adds a symbol "NAME@plt" for each PLT entry. */
void vp_image_add_plt(struct vp_image *image, const struct vp_elf_file *file);
/* Adds functions of the unwind tables that no symbol covers, without names. Symbols must be sorted
 * before and after. A symbol without a size gets the size from the unwind tables. */
void vp_image_add_extents(struct vp_image *image, const struct vp_elf_file *file);
#endif
