/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much is copied of guests' user stacks: what unwinding them needed. An address space begins
 * with the largest copies. If a stack needs more than is copied, more is copied at once. Less is
 * copied when a number of stacks needed less.
 */
#ifndef VP_COLLECT_PROGRAMS_STACK_SIZES_H
#define VP_COLLECT_PROGRAMS_STACK_SIZES_H

#include <stdint.h>

#include "schema/user_stack.h"

struct vp_stack_sizes {
	struct {
		uint8_t most; /* units that the stacks since the last change needed */
		uint8_t seen; /* these stacks */
	} at[VP_STACK_SIZES];
};

/* Takes what a stack of that address space needed, in bytes from the start of its copy on. `units`:
 * the sizes of copies that the sampling program reads. */
void vp_stack_sizes_take(struct vp_stack_sizes *sizes, uint8_t units[VP_STACK_SIZES],
			 uint64_t as_root, uint32_t needed);

#endif
