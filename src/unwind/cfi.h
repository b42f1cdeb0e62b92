/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules by which a function's caller is found, from .eh_frame: where the registers are that it had,
 * for an instruction of the function. Nothing in the tables is trusted.
 */
#ifndef VP_UNWIND_CFI_H
#define VP_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/macros.h"
#include "maps/eh_frame.h"
#include "unwind/user_arch.h"

/* The value of a register in the caller. The CFA is the caller's stack pointer before its call. */
enum vp_cfi_kind {
	VP_CFI_SAME,
	VP_CFI_UNDEFINED,
	VP_CFI_AT,            /* in memory at CFA + value */
	VP_CFI_IS,            /* CFA + value; of the CFA itself: register + value */
	VP_CFI_REGISTER,      /* in register `value` */
	VP_CFI_AT_EXPRESSION, /* in memory at the result of an expression … */
	VP_CFI_IS_EXPRESSION, /* or its result: `size` bytes at offset `value` of .eh_frame */
};

struct vp_cfi_rule {
	uint8_t kind;
	uint16_t size;
	int32_t value;
};

struct vp_cfi_row {
	struct vp_cfi_rule cfa; /* VP_CFI_IS or VP_CFI_IS_EXPRESSION */
	uint8_t cfa_register, return_register;
	uint32_t into;  /* distance of the instruction from the function's start */
	bool is_signal; /* the caller was interrupted at its address, and did not call */
	struct vp_cfi_rule of[VP_DWARF_REGISTERS];
	uint64_t changed;     /* a bit for each register whose rule is not VP_CFI_SAME */
	bool reads_registers; /* a rule needs registers other than the CFA */
};

enum vp_cfi_result {
	VP_CFI_FOUND,
	VP_CFI_NONE, /* no function of the tables */
	VP_CFI_BAD,  /* damaged, or of a kind that compilers do not make */
};

/* Finds the row for the instruction at `address` (of the file). *work: instructions of DWARF that
 * may still be executed, which bounds forged tables. */
enum vp_cfi_result vp_cfi_find(const struct vp_eh_frame *tables, uint64_t address, uint32_t *work,
			       struct vp_cfi_row *ret);

/* The registers and the memory of an expression. */
struct vp_cfi_state {
	const uint64_t *registers; /* VP_DWARF_REGISTERS */
	uint64_t known;            /* a bit for each */
	vp_user_read read;
	void *context;
};

/* Computes an expression; `start`, if it is not NULL, is on its stack. False: damaged, unknown, too
 * long, or memory that cannot be read. */
bool vp_cfi_compute(struct vp_slice expression, const struct vp_cfi_state *state,
		    const uint64_t *start, uint64_t *ret) VP_MUST_CHECK;

#endif
