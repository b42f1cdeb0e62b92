/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwinds a guest kernel's stack from registers, a copy of the stack, and ORC tables. */
#ifndef VP_SYMBOL_UNWIND_H
#define VP_SYMBOL_UNWIND_H

#include "maps/orc.h"
#include "schema/records.h"

enum vp_unwind_end {
	VP_UNWIND_USER,        /* reached the entry from user space */
	VP_UNWIND_OUTERMOST,   /* reached the first function of a kernel thread */
	VP_UNWIND_NO_RULE,     /* code without an ORC rule */
	VP_UNWIND_NO_STACK,    /* outside the copied bytes of the stack */
	VP_UNWIND_NO_REGISTER, /* the rule needs an unknown register */
	VP_UNWIND_TOO_DEEP,
	VP_UNWIND_ENDS
};

enum { VP_UNWIND_FRAMES = 128 };

struct vp_unwind_registers {
	uint64_t ip, sp, bp;
};

struct vp_unwind {
	/* Addresses of the instruction and of its callers, innermost first. For a return address,
	 * the byte before it, which is inside the call instruction. */
	uint64_t at[VP_UNWIND_FRAMES];
	uint32_t count;
	enum vp_unwind_end end;
	uint64_t user_ip; /* with VP_UNWIND_USER: user-space address of the instruction that entered
			     the kernel */
};

/* `pieces`: copies of one or several stacks, in any order; untrusted. */
void vp_unwind_kernel(const struct vp_orc *orc, const struct vp_unwind_registers *from,
		      const struct vp_chain_stack *pieces, size_t n_pieces, struct vp_unwind *ret);

#endif
