/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of a guest kernel's modules. */
#ifndef VP_GUESTMEM_SYMBOLS_MODULES_H
#define VP_GUESTMEM_SYMBOLS_MODULES_H

#include "guestmem/kernel/kernel.h"
#include "maps/writer.h"

/* Calls `each` with the address of every struct module until it returns false. False: stopped by
 * `each`, or the list cannot be read completely. */
bool vp_guest_modules_each(const struct vp_guest_kernel *kernel,
			   bool (*each)(void *context, uint64_t module), void *context);
/* Writes a `k` line per symbol, and a note if the list of modules cannot be read completely. */
void vp_guest_modules_write(const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer);

#endif
