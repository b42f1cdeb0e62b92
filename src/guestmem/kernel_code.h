/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that a guest kernel generates: BPF programs and their trampolines, and those of ftrace. */
#ifndef VP_GUESTMEM_KERNEL_CODE_H
#define VP_GUESTMEM_KERNEL_CODE_H

#include "guestmem/kernel.h"
#include "maps/writer.h"

/* Writes a `k` line for each, with the names that /proc/kallsyms has, and a note if a list cannot
 * be read to its end. Kernels before 5.8 have no such lists. */
void vp_guest_kernel_code_write(const struct vp_guest_kernel *kernel,
				struct vp_maps_writer *writer);

#endif
