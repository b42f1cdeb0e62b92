/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives offsets in task_struct from invariants in memory, for kernels without BTF. Ambiguous
 * results are rejected. */
#ifndef VP_GUESTMEM_KERNEL_DERIVE_H
#define VP_GUESTMEM_KERNEL_DERIVE_H

#include "guestmem/kernel/kernel.h"

/* Sets the offsets of a task's pids, name, list and page tables in the kernel's pack. False, with
 * the pack unchanged, unless each has exactly one possible offset. */
bool vp_guest_derive_tasks(struct vp_guest_kernel *kernel);

#endif
