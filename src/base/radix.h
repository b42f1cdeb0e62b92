/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Radix sort of items by an integer key. */
#ifndef VP_BASE_RADIX_H
#define VP_BASE_RADIX_H

#include <stddef.h>
#include <stdint.h>

struct vp_keyed {
	uint64_t key;
	uint32_t item;
};

/* Sorts by ascending key; stable. */
void vp_radix_sort(struct vp_keyed *things, size_t count);

#endif
