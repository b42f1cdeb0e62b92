/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a sample's call chains to its stack of named frames. A vCPU's stack begins in the guest;
 * where the host is at work for it, the host's frames follow the guest's.
 */
#ifndef VP_ANALYZE_PROFILE_STACK_H
#define VP_ANALYZE_PROFILE_STACK_H

#include "analyze/profile/frame.h"
#include "analyze/profile/resolve.h"
#include "schema/chain_frames.h"
#include "symbol/unwind.h"

/* The part of a stack that a walk was for, and how it ended. */
enum vp_walk { VP_WALK_GUEST_USER, VP_WALK_GUEST_KERNEL, VP_WALK_HOST, VP_WALKS };
enum vp_walk_end {
	VP_WALK_WHOLE,
	VP_WALK_NO_FRAME,    /* code without frame pointers */
	VP_WALK_TOO_DEEP,    /* more frames than are taken */
	VP_WALK_UNREADABLE,  /* a page that could not be read then */
	VP_WALK_NO_RULE,     /* kernel code without unwind table */
	VP_WALK_NO_STACK,    /* beyond the bytes of the kernel's stack that were kept */
	VP_WALK_NO_REGISTER, /* a register that is not known there */
	VP_WALK_NO_POINTER,  /* the stack pointer is not known (Intel) */
	VP_WALK_NOT_WALKED,  /* registers, address space or tables are not known */
	VP_WALK_ENDS
};

/* Names for notes and JSON. */
const char *vp_walk_name(enum vp_walk walk);
const char *vp_walk_end_name(enum vp_walk_end end);

enum { VP_STACK_FRAMES = 4 * VP_CHAIN_FRAMES + VP_UNWIND_FRAMES };

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
	bool hosts_only; /* the guest's frames stay out of a vCPU's stack */
	uint64_t walks[VP_WALKS][VP_WALK_ENDS];
	struct vp_unwind unwind;
};

/* The stack of a tick of code: at least the frame that was hit. False: it is filtered out. */
bool vp_stacks_make(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
		    struct vp_stack *stack);

#endif
