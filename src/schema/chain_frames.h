/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of stacks, shared by the BPF programs and the readers. */
#ifndef VP_SCHEMA_CHAIN_FRAMES_H
#define VP_SCHEMA_CHAIN_FRAMES_H

#include "schema/chain_end.h"
#include "schema/records.h"

enum {
	VP_CHAIN_FRAMES_PER_RECORD = 8,
	/* Pieces of the current guest kernel stack, and of the task's own stack after it. */
	VP_CHAIN_PIECE = 128,
	VP_CHAIN_PIECES = 24,
	VP_CHAIN_OUTER_PIECES = 16,
};

/* Size of all stack records of one sample. */
#define VP_CHAIN_BYTES                                                                             \
	(sizeof(struct vp_guest_regs) +                                                            \
	 3 * VP_CHAIN_FRAMES / VP_CHAIN_FRAMES_PER_RECORD * sizeof(struct vp_chain_frames) +       \
	 (VP_CHAIN_PIECES + VP_CHAIN_OUTER_PIECES) * sizeof(struct vp_chain_stack))

#endif
