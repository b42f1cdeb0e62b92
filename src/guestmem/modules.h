/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of a guest kernel's modules. */
#ifndef VP_GUESTMEM_MODULES_H
#define VP_GUESTMEM_MODULES_H

#include "guestmem/kernel.h"
#include "maps/writer.h"

/* Writes a `k` line per symbol, and a note if the list of modules cannot be read to its end. */
void vp_guest_modules_write(const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer);

#endif
