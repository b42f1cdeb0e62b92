/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 64-bit Arm kernels: location by registers, and address space. */
#ifndef VP_GUESTMEM_KERNEL_KERNEL_ARM_H
#define VP_GUESTMEM_KERNEL_KERNEL_ARM_H

#include "base/macros.h"
#include "guestmem/kernel/kernel.h"

/* Locates the kernel with its page tables and its exception vector table. */
bool vp_guest_kernel_by_arm_registers(const struct vp_guest_memory *memory,
				      const struct vp_guest_registers *vcpu,
				      struct vp_guest_view *ret) VP_MUST_CHECK;
/* Sets the kernel's own page tables, its direct map and its struct page array. */
void vp_guest_kernel_settle_arm(struct vp_guest_kernel *kernel);

#endif
