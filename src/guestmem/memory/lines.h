/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small cache of guest memory: reads of several members of a struct share a system call. For use
 * only where slightly stale data does not matter. */
#ifndef VP_GUESTMEM_MEMORY_LINES_H
#define VP_GUESTMEM_MEMORY_LINES_H

#include "guestmem/memory/memory.h"

enum { VP_GUEST_LINE = 256, VP_GUEST_LINES = 128 };

struct vp_guest_lines {
	struct vp_guest_memory memory; /* reads through the cache */
	const struct vp_guest_memory *below;
	uint64_t addresses[VP_GUEST_LINES]; /* host addresses of the cached lines, + 1; 0: empty */
	char bytes[VP_GUEST_LINES][VP_GUEST_LINE];
};

/* Initializes `lines->memory` to read from `below`, which must outlive it. It has the slots of
 * `below` and owns nothing. */
void vp_guest_lines_begin(struct vp_guest_lines *lines, const struct vp_guest_memory *below);

#endif
