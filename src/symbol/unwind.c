/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol/unwind.h"

#include <string.h>

#include "base/macros.h"

/* struct pt_regs in words. */
enum {
	REGS_R13 = 2,
	REGS_BP = 4,
	REGS_R10 = 7,
	REGS_AX = 10,
	REGS_DX = 12,
	REGS_DI = 14,
	REGS_IP = 16
};
enum { IRET_CS = 1, IRET_SP = 3, WORD = 8, USER_MODE = 3 };

struct state {
	const struct vp_orc *orc;
	const struct vp_chain_stack *pieces;
	size_t n_pieces;
	struct vp_unwind_registers now;
	bool exact;    /* now.ip is the address of an instruction, not a return address */
	uint64_t regs; /* address of the pt_regs of this frame, or 0 */
	enum vp_unwind_end failure;
};

static bool unwind_read_word(struct state *state, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < state->n_pieces; i++) {
		const struct vp_chain_stack *piece = &state->pieces[i];
		uint64_t at = address - piece->address;
		if (at <= sizeof(piece->words) - WORD) {
			memcpy(ret, (const char *)piece->words + at, WORD);
			return true;
		}
	}
	state->failure = VP_UNWIND_NO_STACK;
	return false;
}

/* A register that is valid only in frames of interrupts and exceptions. */
static bool read_saved(struct state *state, unsigned word, uint64_t *ret)
{
	if (state->regs)
		return unwind_read_word(state, state->regs + word * WORD, ret);
	state->failure = VP_UNWIND_NO_REGISTER;
	return false;
}

/* The caller's stack pointer; for frames of type REGS, the address of the saved registers. */
static bool find_frame(struct state *state, const struct vp_orc_rule *rule, uint64_t *ret)
{
	uint64_t offset = (uint64_t)(int64_t)rule->sp_offset, base = 0;
	bool known = true;

	switch ((enum vp_orc_register)rule->sp_reg) {
	case VP_ORC_SP:
		base = state->now.sp;
		break;
	case VP_ORC_BP:
		base = state->now.bp;
		break;
	case VP_ORC_SP_INDIRECT:
		known = unwind_read_word(state, state->now.sp, &base);
		break;
	case VP_ORC_BP_INDIRECT:
		return unwind_read_word(state, state->now.bp + offset, ret);
	case VP_ORC_R10:
		known = read_saved(state, REGS_R10, &base);
		break;
	case VP_ORC_R13:
		known = read_saved(state, REGS_R13, &base);
		break;
	case VP_ORC_DI:
		known = read_saved(state, REGS_DI, &base);
		break;
	case VP_ORC_AX:
		known = read_saved(state, REGS_AX, &base);
		break;
	case VP_ORC_DX:
		known = read_saved(state, REGS_DX, &base);
		break;
	default:
		state->failure = VP_UNWIND_NO_RULE;
		return false;
	}
	*ret = base + offset;
	return known;
}

/* RBP of the caller with its frame at `frame`; unchanged without a rule. */
static bool find_bp(struct state *state, const struct vp_orc_rule *rule, uint64_t frame)
{
	uint64_t offset = (uint64_t)(int64_t)rule->bp_offset;

	if (rule->bp_reg == VP_ORC_PREV_SP)
		return unwind_read_word(state, frame + offset, &state->now.bp);
	if (rule->bp_reg == VP_ORC_BP)
		return unwind_read_word(state, state->now.bp + offset, &state->now.bp);
	if (state->regs && rule->kind == VP_ORC_REGS)
		return unwind_read_word(state, state->regs + REGS_BP * WORD, &state->now.bp);
	return true;
}

/* Continues at the code interrupted by an interrupt, exception or system call, whose frame is at
 * `iret`. */
static bool leave_by_iret(struct state *state, uint64_t iret, uint64_t *cs)
{
	state->exact = true;
	return unwind_read_word(state, iret, &state->now.ip) &&
	       unwind_read_word(state, iret + IRET_CS * WORD, cs) &&
	       unwind_read_word(state, iret + IRET_SP * WORD, &state->now.sp);
}

/* Unwinds one frame; false at the end, with the reason in `failure`. */
static bool unwind_step(struct state *state)
{
	const struct vp_orc_rule *rule =
	    vp_orc_find(state->orc, state->exact ? state->now.ip : state->now.ip - 1);
	uint64_t frame, cs = 0;
	bool good;

	state->failure = VP_UNWIND_NO_RULE;
	if (!rule || rule->kind == VP_ORC_UNDEFINED)
		return false;
	if (rule->kind == VP_ORC_OUTERMOST) {
		state->failure = VP_UNWIND_OUTERMOST;
		return false;
	}
	if (!find_frame(state, rule, &frame))
		return false;
	state->regs = rule->kind == VP_ORC_REGS ? frame : 0;
	if (rule->kind == VP_ORC_CALL) {
		good = unwind_read_word(state, frame - WORD, &state->now.ip);
		state->now.sp = frame;
		state->exact = false;
	} else {
		uint64_t before = rule->kind == VP_ORC_REGS ? REGS_IP * WORD : 0;
		good = leave_by_iret(state, frame + before, &cs);
	}
	if (good && cs & USER_MODE) {
		state->failure = VP_UNWIND_USER;
		return false;
	}
	return good && find_bp(state, rule, frame);
}

void vp_unwind_kernel(const struct vp_orc *orc, const struct vp_unwind_registers *from,
		      const struct vp_chain_stack *pieces, size_t n_pieces, struct vp_unwind *ret)
{
	struct state state = {
	    .orc = orc, .pieces = pieces, .n_pieces = n_pieces, .now = *from, .exact = true};

	*ret = (struct vp_unwind){.count = 1, .at = {from->ip}, .end = VP_UNWIND_TOO_DEEP};
	while (ret->count < VP_UNWIND_FRAMES) {
		if (!unwind_step(&state)) {
			ret->end = state.failure;
			ret->user_ip = ret->end == VP_UNWIND_USER ? state.now.ip : 0;
			return;
		}
		ret->at[ret->count++] = state.exact ? state.now.ip : state.now.ip - 1;
	}
}
