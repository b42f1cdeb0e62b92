/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bounds of call chains, for the programs that take them and those who read what they took. */
#ifndef VP_SCHEMA_CHAIN_FRAMES_H
#define VP_SCHEMA_CHAIN_FRAMES_H

#include "schema/records.h"

enum {
	/* Frames: of the guest's user space, of the host's kernel and user space. */
	VP_CHAIN_FRAMES = 64,
	VP_CHAIN_FRAMES_PER_RECORD = 8,
	/* Pieces of the guest kernel's current stack, and of the task's own after it. */
	VP_CHAIN_PIECE = 128,
	VP_CHAIN_PIECES = 24,
	VP_CHAIN_OUTER_PIECES = 16,
};

/* All records of one sample's chains. */
#define VP_CHAIN_BYTES                                                                             \
	(sizeof(struct vp_guest_regs) +                                                            \
	 3 * VP_CHAIN_FRAMES / VP_CHAIN_FRAMES_PER_RECORD * sizeof(struct vp_chain_frames) +       \
	 (VP_CHAIN_PIECES + VP_CHAIN_OUTER_PIECES) * sizeof(struct vp_chain_stack))

#endif
