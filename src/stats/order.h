/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorting by a value, with WEKA's order of equal values. */
#ifndef VP_STATS_ORDER_H
#define VP_STATS_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct vp_keyed {
	double value;
	uint32_t row;
};

/* The quicksort of weka.core.Utils 3.6. It is not stable, and the order of equal values affects the
 * rounding of later sums. */
void vp_order_sort(struct vp_keyed *items, size_t n);

#endif
