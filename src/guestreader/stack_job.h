/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks that a guest's reader unwinds, and their call chains, in memory that it shares with the
 * process that records. Each side reads what the other wrote as if it were anything.
 */
#ifndef VP_GUESTREADER_STACK_JOB_H
#define VP_GUESTREADER_STACK_JOB_H

#include <stdint.h>

#include "schema/chain_end.h"
#include "schema/user_stack.h"

enum { VP_STACK_JOBS = 64 };

struct vp_stack_job {
	struct vp_user_stack stack; /* the request … */
	/* … and the frames of an interpreter in the same thread; count 0: none */
	struct vp_interpreted interpreted;
	/* The reply, with `count` as the last; 0: it cannot be unwound, or is not yet. */
	uint32_t count;
	uint16_t end, flags; /* as in chain_frames */
	uint64_t ips[VP_CHAIN_FRAMES];
};

struct vp_stack_jobs {
	uint64_t done; /* number of the last request that is complete */
	struct vp_stack_job at[VP_STACK_JOBS];
};

#endif
