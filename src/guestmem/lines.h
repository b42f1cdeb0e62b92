/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's memory, of which a small read brings what is around it: members of one struct are read
 * with one system call. For as long as it does not matter that bytes are as they were a moment ago.
 */
#ifndef VP_GUESTMEM_LINES_H
#define VP_GUESTMEM_LINES_H

#include "guestmem/memory.h"

enum { VP_GUEST_LINE = 256, VP_GUEST_LINES = 128 };

struct vp_guest_lines {
	struct vp_guest_memory memory; /* to be read in place of the one below */
	const struct vp_guest_memory *below;
	uint64_t addresses[VP_GUEST_LINES]; /* host addresses of the lines, + 1; 0: none */
	char bytes[VP_GUEST_LINES][VP_GUEST_LINE];
};

/* Initializes `lines->memory` to read `below`, which must outlive it. It has the slots of `below`
 * and owns nothing. */
void vp_guest_lines_begin(struct vp_guest_lines *lines, const struct vp_guest_memory *below);

#endif
