/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call chains of a sample, put together from the records before it. */
#ifndef VP_TIMELINE_CHAIN_H
#define VP_TIMELINE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/chain_frames.h"
#include "schema/records.h"

enum { VP_CHAIN_STACKS = VP_CHAIN_PIECES + VP_CHAIN_OUTER_PIECES };

/* A walked chain, innermost first: the first is an instruction, the others are return addresses. */
struct vp_chain_walk {
	uint64_t ips[VP_CHAIN_FRAMES];
	uint32_t count; /* 0: it was not walked */
	uint32_t end;   /* enum vp_chain_end */
};

struct vp_chain {
	uint32_t tid;
	bool used;     /* a sample had it: the next record begins another */
	bool has_regs; /* the sample is a vCPU's */
	struct vp_guest_regs regs;
	struct vp_chain_walk guest_user, host_kernel, host_user;
	struct vp_chain_stack stack[VP_CHAIN_STACKS];
	uint32_t n_stack;
};

/* Takes a guest_regs, chain_frames or chain_stack. */
void vp_chain_take(struct vp_chain *chain, const struct vp_record_header *record);
/* Whether the chain is that of a sample of this thread; `more`: it is the next one's, too. */
bool vp_chain_use(struct vp_chain *chain, uint32_t tid, bool more);

#endif
