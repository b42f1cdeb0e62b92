/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds kernel variables by their contents, for kernels without CONFIG_KALLSYMS_ALL, whose symbol
 * tables list only functions (for example Debian's for 64-bit Arm). */
#ifndef VP_GUESTMEM_KERNEL_PLACES_H
#define VP_GUESTMEM_KERNEL_PLACES_H

#include "base/buffer.h"
#include "guestmem/kernel/kernel.h"
#include "maps/guest_btf.h"

/* Sets banner, notes and BTF in the pack. `image` starts at _text. */
void vp_guest_places_find(struct vp_kernel_pack *pack, const struct vp_buffer *image);
/* Sets the first task and Arm's per-CPU variables in the kernel's pack, unless known. Needs its
 * page tables, and a view with registers. */
void vp_guest_places_find_tasks(struct vp_guest_kernel *kernel, const struct vp_buffer *image,
				const struct vp_guest_btf *btf);
/* Sets the list of modules in the kernel's pack, unless known; an empty list is not found. */
void vp_guest_places_find_modules(struct vp_guest_kernel *kernel, const struct vp_buffer *image);
/* Sets the counter of forks in the pack of a kernel for 64-bit Arm, unless known: the variable that
 * copy_process() increments. `image` starts at _text. */
void vp_guest_places_find_forks(struct vp_kernel_pack *pack, const struct vp_buffer *image);

#endif
