/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/quick_chain.h"

#include <stddef.h>

#include "schema/chain_end.h"
#include "unwind/user_arch.h"

enum { IP = VP_DWARF_RIP, SP = VP_DWARF_RSP, FP = VP_DWARF_RBP };
#define BIT(number) (1ULL << (number))
#define NEEDED (BIT(IP) | BIT(SP) | BIT(FP))
/* Upper limit of user space with 5 levels of page tables. */
#define USER_END (1ULL << 56)

static size_t place_of(uint64_t address, uint32_t version)
{
	return (address ^ address >> 12 ^ version * 0x9e3779b1U) % VP_QUICK_ROWS;
}

static const struct vp_quick_row *row_at(const struct vp_quick_rows *rows, uint64_t address,
					 uint32_t version)
{
	const struct vp_quick_row *row = &rows->at[place_of(address, version)];

	return row->address == address && row->version == version ? row : NULL;
}

/* Whether the CFA follows from RSP or RBP, and the caller's RBP and RIP from the CFA. */
static bool is_quick(const struct vp_cfi_row *row)
{
	const struct vp_cfi_rule *fp = &row->of[FP];

	return !row->is_signal && !row->reads_registers && row->return_register == IP &&
	       row->cfa.kind == VP_CFI_IS && (row->cfa_register == SP || row->cfa_register == FP) &&
	       !(row->changed & BIT(SP)) && row->of[IP].kind == VP_CFI_AT &&
	       (fp->kind == VP_CFI_SAME || (fp->kind == VP_CFI_AT && fp->value));
}

void vp_quick_rows_put(struct vp_quick_rows *rows, uint32_t version, uint64_t address,
		       const struct vp_cfi_row *row)
{
	bool ends = row->return_register == IP && row->of[IP].kind == VP_CFI_UNDEFINED;

	if (!ends && !is_quick(row))
		return;
	rows->at[place_of(address, version)] = (struct vp_quick_row){
	    .address = address,
	    .version = version,
	    .cfa = row->cfa.value,
	    .ip = row->of[IP].value,
	    .fp = row->of[FP].kind == VP_CFI_AT ? row->of[FP].value : 0,
	    .by_fp = row->cfa_register == FP,
	    .ends = ends,
	};
}

/* The registers that are restored. */
struct quick_registers {
	uint64_t ip, sp, fp;
};

static bool read_register(const struct vp_user_program *program, uint64_t cfa, int32_t at,
			  uint64_t *ret)
{
	return program->read(program->context, cfa + (uint64_t)(int64_t)at, ret, sizeof(*ret));
}

/* Goes on to the caller; false: impossible. */
static bool quick_step(const struct vp_quick_row *row, const struct vp_user_program *program,
		       struct quick_registers *now)
{
	uint64_t cfa = (row->by_fp ? now->fp : now->sp) + (uint64_t)(int64_t)row->cfa;

	if (cfa <= now->sp || !read_register(program, cfa, row->ip, &now->ip) ||
	    (row->fp && !read_register(program, cfa, row->fp, &now->fp)))
		return false;
	now->sp = cfa;
	return true;
}

static bool quick_end(struct vp_user_chain *chain, enum vp_chain_end end)
{
	chain->end = end;
	return true;
}

static void quick_add(struct vp_user_chain *chain, const struct quick_registers *now)
{
	chain->ips[chain->count] = now->ip;
	chain->fps[chain->count++] = now->fp;
}

bool vp_quick_chain_make(const struct vp_quick_rows *rows, uint32_t version,
			 const struct vp_user_program *program,
			 const struct vp_user_registers *from, struct vp_user_chain *ret)
{
	struct quick_registers now = {from->value[IP], from->value[SP], from->value[FP]};
	const struct vp_quick_row *row = row_at(rows, now.ip, version);

	if (!row || (from->known & NEEDED) != NEEDED)
		return false;
	ret->count = 0;
	ret->by_table = 0;
	ret->has_link = false;
	ret->guessed = false;
	quick_add(ret, &now);
	while (ret->count < VP_CHAIN_LONGEST) {
		if (row->ends)
			return quick_end(ret, VP_CHAIN_WHOLE);
		if (!quick_step(row, program, &now))
			return false;
		ret->by_table++;
		if (!now.ip)
			return quick_end(ret, VP_CHAIN_WHOLE);
		/* Only addresses in executable memory have rows. */
		row = row_at(rows, now.ip - 1, version);
		if (!row || now.ip >= USER_END)
			return false;
		quick_add(ret, &now);
	}
	return quick_end(ret, VP_CHAIN_TOO_DEEP);
}
