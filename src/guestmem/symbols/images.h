/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of the files mapped by guest processes, as symbol-map text. */
#ifndef VP_GUESTMEM_SYMBOLS_IMAGES_H
#define VP_GUESTMEM_SYMBOLS_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/memory/guest_view.h"
#include "maps/format.h"
#include "maps/writer.h"

struct vp_guest_image {
	const char *path;
	struct vp_build_id build_id; /* at the time of the mapping */
	uint64_t print;              /* without a build-id: vp_guest_file_print(); 0: unknown */
	uint64_t
	    inode; /* a struct inode: it outlives the processes that map the file; 0: unknown */
};

/* Totals for all files of a guest. */
struct vp_guest_images {
	const struct vp_guest_kernel *kernel;
	struct vp_maps_writer *writer;
	uint64_t left;   /* remaining bytes of symbol tables to read */
	uint64_t missed; /* files without symbols, and without a note */
	unsigned reported;
	uint64_t headless;       /* files whose section headers are missing … */
	char headless_path[128]; /* … and the first one's path */
	/* The vDSO as a process has it, for kernels without CONFIG_KALLSYMS_ALL; empty: unknown. */
	struct vp_slice vdso;
};

/* Reads the vDSO of a process; false: unreadable. */
bool vp_guest_vdso_read(const struct vp_guest_view *view, uint64_t start, uint64_t size,
			struct vp_buffer *ret) VP_MUST_CHECK;

void vp_guest_images_init(struct vp_guest_images *images, const struct vp_guest_kernel *kernel,
			  struct vp_maps_writer *writer);
/* Writes the file with the symbols in the guest's page cache, and a note with the reason for
 * missing ones. */
void vp_guest_images_write(struct vp_guest_images *images, const struct vp_guest_image *image);
/* Writes the vDSO, and the number of files without a note. */
void vp_guest_images_finish(struct vp_guest_images *images);

#endif
