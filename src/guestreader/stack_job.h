/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory shared by the recorder and a guest's reader: stacks to unwind, and their call chains. Each
 * side treats the other's data as untrusted. */
#ifndef VP_GUESTREADER_STACK_JOB_H
#define VP_GUESTREADER_STACK_JOB_H

#include <stdint.h>

#include "schema/chain_end.h"
#include "schema/user_stack.h"

enum { VP_STACK_JOBS = 64 };

struct vp_stack_job {
	struct vp_user_stack stack; /* the request … */
	/* … and interpreter frames of the same thread; count 0: none */
	struct vp_interpreted interpreted;
	/* The reply; `count` is written last. 0: not unwound yet, or cannot be unwound. */
	uint32_t count;
	uint16_t end, flags; /* as in chain_frames */
	uint32_t needed;     /* bytes of the stack that were read, from the start of the copy on */
	uint64_t ips[VP_CHAIN_LONGEST];
};

struct vp_stack_jobs {
	uint64_t done; /* number of the last completed request */
	struct vp_stack_job at[VP_STACK_JOBS];
};

#endif
