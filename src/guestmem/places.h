/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds in a kernel's image what its symbol table leaves out without CONFIG_KALLSYMS_ALL, which
 * only has functions then: by what is there, and only where there is no doubt. Debian's kernels for
 * 64-bit Arm are built like that.
 */
#ifndef VP_GUESTMEM_PLACES_H
#define VP_GUESTMEM_PLACES_H

#include "base/buffer.h"
#include "guestmem/kernel.h"
#include "maps/guest_btf.h"

/* Puts the banner, the notes and the BTF into the pack. The image begins at _text. */
void vp_guest_places_find(struct vp_kernel_pack *pack, const struct vp_buffer *image);
/*
 * Puts the first task and Arm's variables of each CPU into the kernel's pack, unless they are
 * there. Its page tables are known, and its view has registers.
 */
void vp_guest_places_find_tasks(struct vp_guest_kernel *kernel, const struct vp_buffer *image,
				const struct vp_guest_btf *btf);

#endif
