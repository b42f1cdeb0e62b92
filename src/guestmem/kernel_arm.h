/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels of 64-bit Arm: how registers lead to them, and their address space.
 */
#ifndef VP_GUESTMEM_KERNEL_ARM_H
#define VP_GUESTMEM_KERNEL_ARM_H

#include "base/macros.h"
#include "guestmem/kernel.h"

/* Where the kernel is, by its page tables and its table of exceptions. */
bool vp_guest_kernel_by_arm_registers(const struct vp_guest_memory *memory,
				      const struct vp_guest_registers *vcpu,
				      struct vp_guest_view *ret) VP_MUST_CHECK;
/* Puts the kernel's own page tables, its direct map and its array of pages into it. */
void vp_guest_kernel_settle_arm(struct vp_guest_kernel *kernel);

#endif
