/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cache of the guest-physical addresses at which kernels were found, stored next to the kernel
 * packs. The file `places` has a line `GPA NAME` per VM: hexadecimal address, name escaped as in
 * symbol maps; the latest is last.
 */
#ifndef VP_COLLECT_GUESTS_KERNEL_ADDRESSES_H
#define VP_COLLECT_GUESTS_KERNEL_ADDRESSES_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* 0: unknown. The memory there may have any contents. */
uint64_t vp_kernel_address_recall(const char *folder, const char *vm);
/* Creates the folder if necessary. */
struct vp_error *vp_kernel_address_store(const char *folder, const char *vm,
					 uint64_t gpa) VP_MUST_CHECK;

#endif
