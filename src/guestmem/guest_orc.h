/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unwind tables of a guest's kernel and its modules, read from its memory. */
#ifndef VP_GUESTMEM_GUEST_ORC_H
#define VP_GUESTMEM_GUEST_ORC_H

#include "base/macros.h"
#include "guestmem/kernel.h"

/*
 * Writes them as text (maps/orc.h) to `fd`; `entries` is how many. Errors: the kernel has none, as
 * one with frame pointers does not, or they are not to be read.
 */
struct vp_error *vp_guest_orc_write(const struct vp_guest_kernel *kernel, int fd,
				    size_t *entries) VP_MUST_CHECK;

#endif
