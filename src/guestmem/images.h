/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of the files that a guest's processes have mapped, as map text. */
#ifndef VP_GUESTMEM_IMAGES_H
#define VP_GUESTMEM_IMAGES_H

#include "guestmem/kernel.h"
#include "maps/format.h"
#include "maps/writer.h"

struct vp_guest_image {
	const char *path;
	struct vp_build_id build_id; /* as it was when it was mapped */
	uint64_t print;              /* if it has no build-id: vp_guest_file_print(); 0: unknown */
	uint64_t file;               /* a struct file of it; 0: none */
};

/* Totals of all files of a guest. */
struct vp_guest_images {
	const struct vp_guest_kernel *kernel;
	struct vp_maps_writer *writer;
	uint64_t left;   /* bytes of symbol tables that may still be read */
	uint64_t missed; /* files whose lack of symbols there was no line for */
	unsigned reported;
};

void vp_guest_images_init(struct vp_guest_images *images, const struct vp_guest_kernel *kernel,
			  struct vp_maps_writer *writer);
/*
 * Writes the image with the symbols that are in the guest's page cache, and a note with
 * the reason for missing ones.
 */
void vp_guest_images_write(struct vp_guest_images *images, const struct vp_guest_image *image);
/* The vDSO, and how many files had no note. */
void vp_guest_images_finish(struct vp_guest_images *images);

#endif
