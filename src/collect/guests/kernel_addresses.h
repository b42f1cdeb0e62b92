/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Last known addresses of guest kernels in their VMs' memory, stored next to the kernel packs. The
 * file `places` has a line `GPA NAME` for each VM, with the address in hexadecimal and the name
 * escaped as in map text; the latest is last. */
#ifndef VP_COLLECT_GUESTS_KERNEL_ADDRESSES_H
#define VP_COLLECT_GUESTS_KERNEL_ADDRESSES_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* 0: unknown. The memory there may have any contents. */
uint64_t vp_kernel_address_recall(const char *folder, const char *vm);
/* The folder is made if it has to be. */
struct vp_error *vp_kernel_address_remember(const char *folder, const char *vm,
					    uint64_t gpa) VP_MUST_CHECK;

#endif
