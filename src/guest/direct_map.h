/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the x86-64 kernel's direct map of all physical memory (PAGE_OFFSET), whose address is
 * random. */
#ifndef VP_GUEST_DIRECT_MAP_H
#define VP_GUEST_DIRECT_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Reads 8 bytes of kernel memory; false: unreadable. */
typedef bool vp_read_kernel(void *context, uint64_t address, uint64_t *value);

/*
 * The virtual address of physical address 0, found by walking the page tables at `pgd` (a virtual
 * address in the direct map): with the right value, the walk to `pgd` itself ends at `pgd`. 0: not
 * found.
 */
uint64_t vp_direct_map_find(uint64_t pgd, vp_read_kernel *read, void *context);

#endif
