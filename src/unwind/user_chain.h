/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call chain of a program, from its registers and its stack: by unwind tables where
 * code has them, else by frame pointers. Nothing of registers, stack and tables is trusted.
 */
#ifndef VP_UNWIND_USER_CHAIN_H
#define VP_UNWIND_USER_CHAIN_H

#include "base/macros.h"
#include "schema/chain_end.h"
#include "unwind/cfi.h"
#include "unwind/user_arch.h"

struct vp_user_registers {
	uint64_t value[VP_DWARF_REGISTERS];
	uint64_t known; /* a bit for each */
};

enum vp_user_step {
	VP_USER_STEP_NONE,   /* not its code, or unwound by the frame pointer */
	VP_USER_STEP_DONE,   /* the registers are the caller's */
	VP_USER_STEP_FAILED, /* no valid caller */
};

/* A guess of a thread that was right: where the return address was, and its value. With the same
 * stack pointer it is tried first. */
struct vp_user_guess {
	uint64_t sp, at, ip;
};

/* The program's memory and code. */
struct vp_user_program {
	const struct vp_user_arch *arch;
	vp_user_read read;
	/* The row for the instruction at an address, and the .eh_frame that its expressions are in.
	 */
	enum vp_cfi_result (*find)(void *context, uint64_t address, struct vp_cfi_row *row,
				   struct vp_slice *expressions);
	/* Whether the address is in code that the program generated; NULL: never. */
	bool (*is_generated)(void *context, uint64_t address);
	/* Unwinds a frame of generated code. `exact`: RIP is the address of an instruction, not a
	 * return address. NULL: never. */
	enum vp_user_step (*step)(void *context, struct vp_user_registers *now, bool exact);
	/* Whether the address is in executable memory. */
	bool (*is_code)(void *context, uint64_t address);
	/* The same for code of a file with an unwind table; only for vp_user_chain_guess(). */
	bool (*has_table)(void *context, uint64_t address);
	struct vp_user_guess *last; /* of the thread; NULL: none is kept */
	void *context;
};

struct vp_user_chain {
	/* As a chain_frames has them: the instruction, then return addresses. For a function that a
	 * signal interrupted: the address of the instruction's second byte. Guessed callers have
	 * the bit VP_CHAIN_GUESSED_IP. */
	uint64_t ips[VP_CHAIN_LONGEST];
	uint32_t count;
	uint64_t fps[VP_CHAIN_LONGEST]; /* frame pointer in each frame; 0: unknown */
	uint32_t by_table;              /* frames whose caller was found by an unwind table */
	bool has_link; /* the second address is in the link register: see VP_CHAIN_LINK */
	bool guessed;  /* a caller was guessed */
	enum vp_chain_end end;
};

void vp_user_chain_make(const struct vp_user_program *program, const struct vp_user_registers *from,
			struct vp_user_chain *ret);
/* The chain from code that has neither an unwind table nor a frame pointer: its caller is guessed.
 * False: no caller from which the chain is whole, and *ret is undefined. */
bool vp_user_chain_guess(const struct vp_user_program *program,
			 const struct vp_user_registers *from,
			 struct vp_user_chain *ret) VP_MUST_CHECK;

#endif
