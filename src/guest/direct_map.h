/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the x86-64 kernel maps all physical memory (PAGE_OFFSET): it may be anywhere. */
#ifndef VP_GUEST_DIRECT_MAP_H
#define VP_GUEST_DIRECT_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Reads 8 bytes of kernel memory; false: not found. */
typedef bool vp_read_kernel(void *context, uint64_t address, uint64_t *value);

/*
 * The virtual address of physical address 0, found by walking the page tables that begin at `pgd`
 * (a virtual address in the direct map): the right value is the one by which the walk to `pgd`
 * itself arrives at `pgd`. 0 if none does.
 */
uint64_t vp_direct_map_find(uint64_t pgd, vp_read_kernel *read, void *context);

#endif
