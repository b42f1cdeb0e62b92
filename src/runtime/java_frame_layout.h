/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stack frames of a Java process (HotSpot): layout of the frame that an instruction of
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
	uint64_t method;     /* the compiled one; 0: none */
	struct vp_java_scope scope;
};

/* Finds the frame's layout, for an instruction in a code heap; false: not found, or invalid. */
bool vp_java_frame_find(const struct vp_java_vm *vm, uint64_t addr,
			struct vp_java_frame *ret) VP_MUST_CHECK;

/* Where the caller's state is. The return address of a frame that is not built is on top of the
 * stack, or in the link register of 64-bit Arm. */
enum vp_java_frame_state {
	VP_JAVA_FRAME_COMPLETE,        /* frame pointer and return address at the frame's end */
	VP_JAVA_FRAME_WITHOUT_POINTER, /* allocated, but the frame pointer is the caller's; on Arm
					* the link register, too */
	VP_JAVA_FRAME_POINTER_ON_TOP,  /* frame pointer and return address on top of the stack */
	VP_JAVA_FRAME_NOT_BUILT,
};

/* The state before the instruction at `addr` executes. Compilers allocate and free frames by a few
 * known sequences of instructions. */
enum vp_java_frame_state vp_java_frame_state(const struct vp_process_memory *memory,
					     const struct vp_java_frame *frame, uint64_t addr);
/* The same for 64-bit Arm. */
enum vp_java_frame_state vp_java_frame_state_arm(const struct vp_process_memory *memory,
						 const struct vp_java_frame *frame, uint64_t addr);

#endif
