/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives the offsets of task members of a kernel without BTF from invariants in its memory. Only
 * unambiguous ones are returned. */
#ifndef VP_GUESTMEM_DERIVE_H
#define VP_GUESTMEM_DERIVE_H

#include "guestmem/kernel.h"

/*
 * Puts the offsets of tasks' numbers, names, list and page tables into the kernel's pack. False,
 * and the pack as it was, if there is not exactly one offset that each of them can be at.
 */
bool vp_guest_derive_tasks(struct vp_guest_kernel *kernel);

#endif
