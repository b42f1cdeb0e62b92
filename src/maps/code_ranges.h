/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of code, such as functions whose names are unknown, and the bytes they are read from. */
#ifndef VP_MAPS_CODE_RANGES_H
#define VP_MAPS_CODE_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Limit of functions per file; further ones are ignored. */
enum { VP_CODE_RANGES_MAX = 4 << 20 };

struct vp_code_range {
	uint64_t start, size; /* size 0: up to the next range */
};

typedef VP_VEC(struct vp_code_range) vp_code_ranges;

/* Contents of a section and its address; bytes missing from the file are zero. */
struct vp_section_bytes {
	const void *bytes;
	size_t size; /* 0: no such section */
	uint64_t addr;
};

#endif
