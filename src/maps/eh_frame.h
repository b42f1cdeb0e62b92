/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Function extents from the unwind tables of an ELF file (.eh_frame, .eh_frame_hdr). Stripped files
 * keep them. Their names are not in there.
 */
#ifndef VP_MAPS_EH_FRAME_H
#define VP_MAPS_EH_FRAME_H

#include <stdbool.h>

#include "maps/code_ranges.h"

struct vp_eh_frame {
	struct vp_section_bytes frame, header; /* header: .eh_frame_hdr */
	bool is_64_bit;
};

/*
 * Appends the functions to `ret`, in any order, possibly twice. Both tables are read: the header
 * finds entries after a part that is missing. Entries that are damaged are left out. Little-endian
 * files only.
 */
void vp_eh_frame_functions(const struct vp_eh_frame *tables, vp_code_ranges *ret);

#endif
