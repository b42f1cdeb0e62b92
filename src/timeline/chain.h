/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Assembles the stack of a sample from the records before it. */
#ifndef VP_TIMELINE_CHAIN_H
#define VP_TIMELINE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/chain_end.h"
#include "schema/chain_frames.h"
#include "schema/records.h"

enum { VP_CHAIN_STACKS = VP_CHAIN_PIECES + VP_CHAIN_OUTER_PIECES };

/* A stack, innermost first: the first entry is an instruction, the others are return addresses. */
struct vp_chain_walk {
	uint64_t ips[VP_CHAIN_LONGEST];
	uint32_t count; /* 0: no stack */
	uint32_t end;   /* enum vp_chain_end */
	bool link;      /* the second is the link register's: see VP_CHAIN_LINK */
	bool guessed;   /* some addresses were: these have VP_CHAIN_GUESSED_IP */
};

struct vp_chain {
	uint32_t tid;
	bool used;     /* already used by a sample: the next record starts a new stack */
	bool has_regs; /* the sample is in a guest */
	struct vp_guest_regs regs;
	struct vp_chain_walk guest_user, host_kernel, host_user;
	struct vp_chain_walk guest_kernel; /* of 64-bit Arm; others' have a stack */
	struct vp_chain_stack stack[VP_CHAIN_STACKS];
	uint32_t n_stack;
};

/* Adds a guest_regs, chain_frames or chain_stack record. */
void vp_chain_take(struct vp_chain *chain, const struct vp_record_header *record);
/* Whether the stack belongs to a sample of this thread; `more`: the next sample has the same
 * stack. */
bool vp_chain_use(struct vp_chain *chain, uint32_t tid, bool more);

#endif
