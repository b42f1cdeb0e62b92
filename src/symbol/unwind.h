/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call chain of a guest's kernel, from its registers, a copy of its stack and its tables. */
#ifndef VP_SYMBOL_UNWIND_H
#define VP_SYMBOL_UNWIND_H

#include "maps/orc.h"
#include "schema/records.h"

enum vp_unwind_end {
	VP_UNWIND_USER,        /* where user space entered the kernel */
	VP_UNWIND_OUTERMOST,   /* a kernel thread's first function */
	VP_UNWIND_NO_RULE,     /* code that is not in the tables */
	VP_UNWIND_NO_STACK,    /* beyond the bytes of the stack that there are */
	VP_UNWIND_NO_REGISTER, /* the rule wants a register that is not known there */
	VP_UNWIND_TOO_DEEP,
	VP_UNWIND_ENDS
};

enum { VP_UNWIND_FRAMES = 128 };

struct vp_unwind_registers {
	uint64_t ip, sp, bp;
};

struct vp_unwind {
	/* Addresses of the instruction and of the calls that led to it, innermost first: of a
	 * return address the byte before, which is inside the call. */
	uint64_t at[VP_UNWIND_FRAMES];
	uint32_t count;
	enum vp_unwind_end end;
	uint64_t user_ip; /* with VP_UNWIND_USER: where user space goes on */
};

/* `pieces` are those of one stack or several, in any order; nothing of them is trusted. */
void vp_unwind_kernel(const struct vp_orc *orc, const struct vp_unwind_registers *from,
		      const struct vp_chain_stack *pieces, size_t n_pieces, struct vp_unwind *ret);

#endif
