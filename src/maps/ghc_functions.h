/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions of Haskell programs. GHC's code has no unwind tables, but each function follows an info
 * table for the garbage collector, which stripped programs keep.
 */
#ifndef VP_MAPS_GHC_FUNCTIONS_H
#define VP_MAPS_GHC_FUNCTIONS_H

#include <stdint.h>

#include "maps/code_ranges.h"

/* Smallest part of the code, without unwind tables, that is searched first; and if that has such
 * functions. */
enum { VP_GHC_SMALLEST = 64 << 10, VP_GHC_SMALLEST_MORE = 512 };

/*
 * Appends the functions in this part of the code, in order; nothing, if it has too few tables for
 * code of GHC. [data_start, data_end): addresses of the program's data, to which tables refer.
 * A function includes the places in it to which others return. Code of the runtime system that has
 * no table counts as part of the function before.
 */
void vp_ghc_functions(const struct vp_section_bytes *code, uint64_t data_start, uint64_t data_end,
		      vp_code_ranges *ret);

#endif
