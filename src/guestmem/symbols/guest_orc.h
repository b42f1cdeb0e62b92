/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the unwind tables of a guest kernel and its modules from its memory. */
#ifndef VP_GUESTMEM_SYMBOLS_GUEST_ORC_H
#define VP_GUESTMEM_SYMBOLS_GUEST_ORC_H

#include "base/macros.h"
#include "guestmem/kernel/kernel.h"

/* Writes them as text (maps/orc.h) to `fd`; `entries`: their number. Errors: the kernel has none
 * (for example with frame pointers), or they cannot be read. */
struct vp_error *vp_guest_orc_write(const struct vp_guest_kernel *kernel, int fd,
				    size_t *entries) VP_MUST_CHECK;

#endif
