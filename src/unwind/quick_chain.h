/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call chains by rows that were used before, in a form that needs few instructions: nearly all code
 * of x86-64 finds its caller by RSP or RBP alone. Other registers are not restored. A chain that
 * needs them, or code without such a row, is unwound by vp_user_chain_make(), with the same result.
 */
#ifndef VP_UNWIND_QUICK_CHAIN_H
#define VP_UNWIND_QUICK_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "unwind/cfi.h"
#include "unwind/user_chain.h"

enum { VP_QUICK_ROWS = 4096 };

struct vp_quick_row {
	uint64_t address;
	uint32_t version; /* of the program's mappings; 0: none */
	int32_t cfa;      /* distance from RSP or RBP */
	int32_t ip, fp;   /* where they are, from the CFA; 0: RBP keeps its value */
	bool by_fp;       /* the CFA is relative to RBP */
	bool ends;        /* no caller */
};

struct vp_quick_rows {
	struct vp_quick_row at[VP_QUICK_ROWS];
};

/* Keeps the row for an address of x86-64 code, unless it needs more than RSP and RBP. `version`
 * (not 0) is that of the program's mappings: rows of other versions are not used. */
void vp_quick_rows_put(struct vp_quick_rows *rows, uint32_t version, uint64_t address,
		       const struct vp_cfi_row *row);

/* As vp_user_chain_make(); false: impossible with these rows, and *ret is undefined. */
bool vp_quick_chain_make(const struct vp_quick_rows *rows, uint32_t version,
			 const struct vp_user_program *program,
			 const struct vp_user_registers *from,
			 struct vp_user_chain *ret) VP_MUST_CHECK;

#endif
