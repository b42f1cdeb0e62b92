/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds a sample's stack of named frames from its walks. A vCPU's stack starts in the guest; if
 * the host works for it, the host's frames follow. */
#ifndef VP_ANALYZE_PROFILE_STACK_H
#define VP_ANALYZE_PROFILE_STACK_H

#include "analyze/profile/frame.h"
#include "analyze/profile/resolve.h"
#include "schema/chain_end.h"
#include "schema/chain_frames.h"
#include "symbol/unwind.h"

/* Part of a stack, and how its walk ended. */
enum vp_walk { VP_WALK_GUEST_USER, VP_WALK_GUEST_KERNEL, VP_WALK_HOST, VP_WALKS };
enum vp_walk_end {
	VP_WALK_WHOLE,
	VP_WALK_GUESSED,     /* whole, with callers that were guessed */
	VP_WALK_NO_FRAME,    /* code without frame pointers */
	VP_WALK_TOO_DEEP,    /* more frames than the limit */
	VP_WALK_UNREADABLE,  /* a page that could not be read */
	VP_WALK_NO_RULE,     /* code without unwind table */
	VP_WALK_BAD_RULE,    /* an invalid unwind table */
	VP_WALK_CHANGED,     /* not a return address, in a part that was read after the sample */
	VP_WALK_EXITED,      /* the process had no memory any more */
	VP_WALK_NO_STACK,    /* outside the recorded bytes of the kernel stack */
	VP_WALK_NO_REGISTER, /* the rule needs an unknown register */
	VP_WALK_NO_POINTER,  /* unknown stack pointer (Intel) */
	VP_WALK_NOT_WALKED,  /* unknown registers, address space or tables */
	VP_WALK_ENDS
};

/* Names for notes and JSON. */
const char *vp_walk_name(enum vp_walk walk);
const char *vp_walk_end_name(enum vp_walk_end end);
/* Number of walks by how they ended. */
typedef uint64_t vp_walk_counts[VP_WALKS][VP_WALK_ENDS];
void vp_walks_merge(vp_walk_counts counts, const vp_walk_counts from);

enum { VP_STACK_FRAMES = 4 * VP_CHAIN_LONGEST + VP_UNWIND_FRAMES };

struct vp_stack {
	uint32_t frames[VP_STACK_FRAMES]; /* outermost first */
	struct vp_frame_address addresses[VP_STACK_FRAMES];
	uint32_t count;
};

struct vp_stacks {
	struct vp_resolver *resolver;
	struct vp_timeline *timeline;
	const struct vp_naming *naming;
	struct vp_frames *frames;
	bool hosts_only; /* leave the guest's frames out of a vCPU's stack */
	vp_walk_counts walks;
	struct vp_unwind unwind;
};

/* The stack of a tick of code, with at least the sampled frame. False: filtered out. */
bool vp_stacks_make(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
		    struct vp_stack *stack);

#endif
