/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of Java code (HotSpot) in call chains: unwinds them, and replaces addresses by those of
 * methods. Layouts of frames are cached for a short time, as code is replaced. */
#ifndef VP_GUESTREADER_JAVA_FRAMES_H
#define VP_GUESTREADER_JAVA_FRAMES_H

#include "runtime/java.h"
#include "schema/chain_end.h"
#include "unwind/user_chain.h"

struct vp_java_frames;

/* A stack with Java frames. */
struct vp_java_stack {
	struct vp_java_frames *frames;
	const struct vp_user_program *program;
	struct vp_java_vm vm; /* `memory` is not used */
	bool reread;          /* its heaps were read again */
	uint32_t tgid;
	uint64_t time;
};

/* Methods of a chain, for a lookup of their names. */
struct vp_java_found {
	unsigned n_methods; /* interpreted and inlined ones … */
	uint64_t methods[VP_CHAIN_LONGEST];
	unsigned n_code; /* … and addresses in compiled code */
	uint64_t code[VP_CHAIN_LONGEST];
};

struct vp_java_frames *vp_java_frames_new(void);
void vp_java_frames_free(struct vp_java_frames *frames);

/* As in struct vp_user_program. */
enum vp_user_step vp_java_frames_step(struct vp_java_stack *stack, struct vp_user_registers *now,
				      bool exact);
/* Replaces the addresses of interpreted frames by those of their methods; of callers, the address
 * is one higher, like return addresses. Inserts the methods that were inlined into compiled
 * callers.
 */
void vp_java_frames_put(struct vp_java_stack *stack, struct vp_user_chain *chain,
			struct vp_java_found *found);

#endif
