/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Search in what is sorted. */
#ifndef VP_BASE_SEARCH_H
#define VP_BASE_SEARCH_H

#include <stddef.h>

/* The first index from 0 to count - 1 for which `holds`, an expression in the index `i`, is true;
 * count if it is false for all. Once true, it must be true for all later indices. */
#define VP_FIRST(i, count, holds)                                                                  \
	({                                                                                         \
		size_t vp_low = 0, vp_high = (count);                                              \
		while (vp_low < vp_high) {                                                         \
			size_t i = vp_low + (vp_high - vp_low) / 2;                                \
			if (holds)                                                                 \
				vp_high = i;                                                       \
			else                                                                       \
				vp_low = i + 1;                                                    \
		}                                                                                  \
		vp_low;                                                                            \
	})

#endif
