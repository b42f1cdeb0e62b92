/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules by which a function's caller is found, from .eh_frame: where the registers are that it had,
 * for an instruction of the function. x86-64. Nothing in the tables is trusted.
 */
#ifndef VP_UNWIND_CFI_H
#define VP_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/macros.h"
#include "maps/eh_frame.h"

/* DWARF's numbers of registers. */
enum {
	VP_DWARF_RAX = 0,
	VP_DWARF_RDX = 1,
	VP_DWARF_RCX = 2,
	VP_DWARF_RBX = 3,
	VP_DWARF_RSI = 4,
	VP_DWARF_RDI = 5,
	VP_DWARF_RBP = 6,
	VP_DWARF_RSP = 7,
	VP_DWARF_R8 = 8,
	VP_DWARF_R12 = 12,
	VP_DWARF_R15 = 15,
	VP_DWARF_RIP = 16,
	VP_DWARF_REGISTERS
};

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
	bool is_signal; /* the caller was interrupted at its address, and did not call */
	struct vp_cfi_rule of[VP_DWARF_REGISTERS];
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
	uint32_t known;            /* a bit for each */
	bool (*read)(void *context, uint64_t address, void *bytes, size_t size);
	void *context;
};

/* Computes an expression; `start`, if it is not NULL, is on its stack. False: damaged, unknown, too
 * long, or memory that cannot be read. */
bool vp_cfi_compute(struct vp_slice expression, const struct vp_cfi_state *state,
		    const uint64_t *start, uint64_t *ret) VP_MUST_CHECK;

#endif
