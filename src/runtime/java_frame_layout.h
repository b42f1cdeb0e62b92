/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stack frames of a Java process (HotSpot, x86-64): layout of the frame that an instruction of
 * generated code has, and the methods that were inlined there. */
#ifndef VP_RUNTIME_JAVA_FRAME_LAYOUT_H
#define VP_RUNTIME_JAVA_FRAME_LAYOUT_H

#include "base/macros.h"
#include "runtime/java.h"
#include "runtime/java_scopes.h"

struct vp_java_frame {
	enum vp_java_kind kind;
	uint64_t start;      /* of the block */
	uint64_t begin, end; /* of its instructions */
	uint32_t size;       /* bytes, with the return address; 0: unknown */
	uint32_t complete;   /* bytes from `begin`, after which the frame has its size */
	unsigned n_inlined;  /* methods that were inlined, … */
	uint64_t inlined[VP_JAVA_INLINED]; /* … innermost first, without the compiled one */
};

/* Finds the frame's layout, for an instruction in a code heap; false: not found, or invalid. */
bool vp_java_frame_find(const struct vp_java_vm *vm, uint64_t addr,
			struct vp_java_frame *ret) VP_MUST_CHECK;

/* Where the caller's state is. */
enum vp_java_frame_state {
	VP_JAVA_FRAME_COMPLETE,      /* return address and RBP at the end of the frame */
	VP_JAVA_FRAME_WITHOUT_RBP,   /* the same, but RBP is the caller's */
	VP_JAVA_FRAME_RBP_ON_TOP,    /* RBP and return address on top of the stack */
	VP_JAVA_FRAME_RETURN_ON_TOP, /* return address on top of the stack, RBP is the caller's */
};

/* The state before the instruction at `addr` executes. Compilers allocate and free frames by a few
 * known sequences of instructions. */
enum vp_java_frame_state vp_java_frame_state(const struct vp_process_memory *memory,
					     const struct vp_java_frame *frame, uint64_t addr);

#endif
