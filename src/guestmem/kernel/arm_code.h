/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds variables by the instructions (A64) that use them. */
#ifndef VP_GUESTMEM_KERNEL_ARM_CODE_H
#define VP_GUESTMEM_KERNEL_ARM_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds the first 64-bit variable that code at `address` increments by one: ADRP, ADD for its
 * address, then LDR, ADD #1, STR. Sets *ret to its address. */
bool vp_arm_code_find_increment(const void *code, size_t size, uint64_t address, uint64_t *ret);
/* Finds the first per-CPU variable that code at `address` uses and whose address is a constant:
 * ADRP, ADD, then an ADD or LDR with TPIDR. Sets *ret to its address, without the CPU's base. */
bool vp_arm_code_find_percpu(const void *code, size_t size, uint64_t address, uint64_t *ret);

#endif
