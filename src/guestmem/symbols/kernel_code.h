/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that a guest kernel generates: BPF programs, and trampolines of BPF and ftrace. */
#ifndef VP_GUESTMEM_SYMBOLS_KERNEL_CODE_H
#define VP_GUESTMEM_SYMBOLS_KERNEL_CODE_H

#include "guestmem/kernel/kernel.h"
#include "maps/writer.h"

/* Writes a `k` line per piece of code, named as in /proc/kallsyms, and a note if a list cannot be
 * read completely. Kernels before 5.8 have no such lists. */
void vp_guest_kernel_code_write(const struct vp_guest_kernel *kernel,
				struct vp_maps_writer *writer);

#endif
