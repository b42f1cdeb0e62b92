/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Function extents from the unwind tables of an ELF file (.eh_frame, .eh_frame_hdr), which stripped
 * files keep. The tables have no names. */
#ifndef VP_MAPS_EH_FRAME_H
#define VP_MAPS_EH_FRAME_H

#include <stdbool.h>

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

#endif
