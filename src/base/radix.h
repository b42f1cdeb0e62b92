/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorts many things by a number each, without comparing them. */
#ifndef VP_BASE_RADIX_H
#define VP_BASE_RADIX_H

#include <stddef.h>
#include <stdint.h>

struct vp_keyed {
	uint64_t key;
	uint32_t item;
};

/* Smallest key first; those of one key stay in their order. */
void vp_radix_sort(struct vp_keyed *things, size_t count);

#endif
