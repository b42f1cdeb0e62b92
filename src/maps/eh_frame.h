/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unwind tables of an ELF file (.eh_frame, .eh_frame_hdr): the extents of functions, and the
 * instructions that make the rules by which a function's caller is found. Stripped files keep them.
 * Functions' names are not in there.
 */
#ifndef VP_MAPS_EH_FRAME_H
#define VP_MAPS_EH_FRAME_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/macros.h"
#include "maps/code_ranges.h"

struct vp_eh_frame {
	struct vp_section_bytes frame, header; /* header: .eh_frame_hdr */
	bool is_64_bit;
};

/*
 * Appends the functions to `ret`, unsorted and possibly twice: both tables are read, because the
 * header also leads to entries after a missing part. Damaged entries are skipped. Little-endian
 * files only.
 */
void vp_eh_frame_functions(const struct vp_eh_frame *tables, vp_code_ranges *ret);

/* The entry of a function. Instructions are DWARF's, from one offset in .eh_frame to another. */
struct vp_eh_frame_entry {
	uint64_t start, size;
	uint64_t code_factor, return_register;
	int64_t data_factor;
	bool is_signal;            /* the caller was interrupted, and did not call */
	uint64_t first, first_end; /* instructions that come first, the same for many functions … */
	uint64_t own, own_end;     /* … and those of the function */
};

/* Finds the entry of the function at `address` by the header; false: none, or it is damaged. */
bool vp_eh_frame_find(const struct vp_eh_frame *tables, uint64_t address,
		      struct vp_eh_frame_entry *ret) VP_MUST_CHECK;

/* DWARF's numbers of variable length; fails on one that is too long. */
uint64_t vp_leb128(struct vp_cursor *cursor);
int64_t vp_leb128_signed(struct vp_cursor *cursor);

#endif
