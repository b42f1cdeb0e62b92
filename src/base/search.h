/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binary search. */
#ifndef VP_BASE_SEARCH_H
#define VP_BASE_SEARCH_H

#include <stddef.h>

/* The first index `i` from 0 to count - 1 for which the expression `holds` is true, or count.
 * `holds` must be false up to some index and true from there on. */
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
