/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/user_chain.h"

#include "schema/chain_end.h"
#include "unwind/cfi.h"

#include <string.h>

#include "base/cursor.h"
#include "base/macros.h"

enum { WORD = 8, PAGE = 4096 };
/* Upper limit of user space with 5 levels of page tables. */
#define USER_END (1ULL << 56)
#define BIT(number) (1ULL << (number))
/* Limits of guesses in a chain: consecutive ones, addresses that are tried as callers, and words of
 * the stack. Haskell's code runs below 16 KiB of C's stack. */
enum { MAX_GUESSES = 4, MAX_TRIES = 256, MAX_WORDS = 3072 };
/* Callers of a guess that are checked. */
enum { CHECKED = 4 };
/* Farthest frame of a caller whose frame pointer is guessed. */
#define MAX_FRAME (1U << 20)

/* Where the walk left code without an unwind table by the frame pointer. */
struct untabled {
	bool exists;
	struct vp_user_registers registers;
	uint32_t count, by_table; /* of the chain up to there */
};

struct walk {
	const struct vp_user_program *program;
	struct vp_user_registers now;
	bool exact; /* the present address is of an instruction, not a return address */
	struct vp_user_chain *ret;
	enum vp_chain_end end; /* reason why the last step failed */
	struct untabled untabled;
	unsigned words, tries; /* remaining ones of guesses */
};

static bool fail(struct walk *walk, enum vp_chain_end end)
{
	walk->end = end;
	return false;
}

static bool read_word(struct walk *walk, uint64_t address, uint64_t *ret)
{
	const struct vp_user_program *program = walk->program;

	return program->read(program->context, address, ret, sizeof(*ret)) ||
	       fail(walk, VP_CHAIN_UNREADABLE);
}

static bool is_known(const struct walk *walk, unsigned number)
{
	return walk->now.known & BIT(number);
}

/* Without a signature or tag. */
static uint64_t address_of(const struct walk *walk, uint64_t value)
{
	return value & walk->program->arch->address;
}

static bool is_generated(const struct walk *walk, uint64_t ip)
{
	const struct vp_user_program *program = walk->program;

	return program->is_generated && program->is_generated(program->context, ip);
}

/* Computes an expression with the registers `from`. */
static bool compute(struct walk *walk, const struct vp_user_registers *from,
		    const struct vp_cfi_rule *rule, struct vp_slice expressions,
		    const uint64_t *start, uint64_t *ret)
{
	const struct vp_cfi_state state = {.registers = from->value,
					   .known = from->known,
					   .read = walk->program->read,
					   .context = walk->program->context};
	size_t at = (size_t)rule->value;

	if (rule->value < 0 || at > expressions.size || rule->size > expressions.size - at)
		return fail(walk, VP_CHAIN_BAD_TABLE);
	return vp_cfi_compute((struct vp_slice){expressions.bytes + at, rule->size}, &state, start,
			      ret) ||
	       fail(walk, VP_CHAIN_BAD_TABLE);
}

/* After a frame that was unwound by a frame record, the stack pointer is unknown. It follows from
 * where the function has its own record. */
static bool find_cfa_by_record(const struct walk *walk, const struct vp_cfi_row *row, uint64_t *ret)
{
	const struct vp_user_arch *arch = walk->program->arch;
	const struct vp_cfi_rule *fp = &row->of[arch->fp], *ip = &row->of[row->return_register];

	if (arch->link == VP_DWARF_NONE || is_known(walk, arch->sp) || !is_known(walk, arch->fp) ||
	    fp->kind != VP_CFI_AT || ip->kind != VP_CFI_AT || fp->value != ip->value - WORD)
		return false;
	*ret = address_of(walk, walk->now.value[arch->fp]) - (uint64_t)(int64_t)fp->value;
	return true;
}

static bool find_cfa(struct walk *walk, const struct vp_cfi_row *row, struct vp_slice expressions,
		     uint64_t *ret)
{
	if (row->cfa.kind == VP_CFI_IS_EXPRESSION)
		return compute(walk, &walk->now, &row->cfa, expressions, NULL, ret);
	if (row->cfa_register == walk->program->arch->sp && find_cfa_by_record(walk, row, ret))
		return true;
	if (!is_known(walk, row->cfa_register))
		return fail(walk, VP_CHAIN_NO_REGISTER);
	*ret = walk->now.value[row->cfa_register] + (uint64_t)(int64_t)row->cfa.value;
	return true;
}

/* Replaces a register that does not keep its value by the caller's. `from`: registers of the frame.
 */
static bool find_register(struct walk *walk, const struct vp_cfi_row *row,
			  struct vp_slice expressions, uint64_t cfa, unsigned number,
			  const struct vp_user_registers *from)
{
	const struct vp_cfi_rule *rule = &row->of[number];
	uint64_t *value = &walk->now.value[number], offset = (uint64_t)(int64_t)rule->value;
	bool found = true, known = true;

	switch ((enum vp_cfi_kind)rule->kind) {
	case VP_CFI_SAME:
		break;
	case VP_CFI_UNDEFINED:
		*value = 0;
		known = false;
		break;
	case VP_CFI_AT:
		found = read_word(walk, cfa + offset, value);
		break;
	case VP_CFI_IS:
		*value = cfa + offset;
		break;
	case VP_CFI_REGISTER:
		known = offset < VP_DWARF_REGISTERS && from->known & BIT(offset);
		*value = known ? from->value[offset] : 0;
		break;
	case VP_CFI_AT_EXPRESSION:
		found = compute(walk, from, rule, expressions, &cfa, value) &&
			read_word(walk, *value, value);
		break;
	case VP_CFI_IS_EXPRESSION:
		found = compute(walk, from, rule, expressions, &cfa, value);
		break;
	}
	walk->now.known |= found && known ? BIT(number) : 0;
	return found;
}

/* Replaces all registers by the caller's. Most keep their values by most rows. */
static bool find_registers(struct walk *walk, const struct vp_cfi_row *row,
			   struct vp_slice expressions, uint64_t cfa)
{
	const struct vp_user_arch *arch = walk->program->arch;
	const uint64_t all = BIT(arch->registers) - 1;
	const struct vp_user_registers *from = &walk->now;
	struct vp_user_registers copy;

	if (row->reads_registers) {
		copy = walk->now;
		from = &copy;
	}
	walk->now.value[arch->sp] = cfa;
	walk->now.known |= BIT(arch->sp);
	walk->now.known &= all & ~row->changed;
	for (uint64_t left = row->changed & all; left; left &= left - 1)
		if (!find_register(walk, row, expressions, cfa, (unsigned)__builtin_ctzll(left),
				   from))
			return false;
	return true;
}

/* Whether the caller's frame can start there: at a higher address, except for a signal handler on
 * its own stack, and for a function that has not used the stack yet. */
static bool is_above(const struct walk *walk, const struct vp_cfi_row *row, uint64_t cfa)
{
	const struct vp_user_arch *arch = walk->program->arch;
	uint64_t sp = walk->now.value[arch->sp];

	return row->is_signal || cfa > sp ||
	       (cfa == sp && arch->link != VP_DWARF_NONE && walk->exact);
}

/* Whether the rule leads to the caller's address. A call overwrites the link register, so that it
 * has the address only in the innermost function, and where a signal interrupted. */
static bool has_caller(const struct walk *walk, const struct vp_cfi_row *row)
{
	return row->of[row->return_register].kind != VP_CFI_SAME ||
	       (row->return_register == walk->program->arch->link && walk->exact);
}

/* Unwinds one frame by a row. */
static bool step_by_row(struct walk *walk, const struct vp_cfi_row *row,
			struct vp_slice expressions)
{
	const struct vp_user_arch *arch = walk->program->arch;
	const unsigned ret = row->return_register;
	struct vp_user_registers *now = &walk->now;
	uint64_t cfa;

	if (row->of[ret].kind == VP_CFI_UNDEFINED)
		return fail(walk, VP_CHAIN_WHOLE);
	if (!find_cfa(walk, row, expressions, &cfa))
		return false;
	if (!is_above(walk, row, cfa))
		return fail(walk, VP_CHAIN_BAD_TABLE);
	if (!find_registers(walk, row, expressions, cfa))
		return false;
	if (!has_caller(walk, row) || !(now->known & BIT(ret)))
		return fail(walk, VP_CHAIN_BAD_TABLE);
	now->value[arch->ip] = address_of(walk, now->value[ret]);
	now->known |= BIT(arch->ip);
	if (!(now->known & BIT(arch->sp)))
		return fail(walk, VP_CHAIN_NO_REGISTER);
	walk->exact = row->is_signal;
	walk->ret->by_table++;
	return true;
}

/* Unwinds the frame of a signal, which has the registers of the interrupted code. */
static bool step_by_signal(struct walk *walk)
{
	const struct vp_user_arch *arch = walk->program->arch;
	uint64_t at = walk->now.value[arch->sp] + arch->signal_registers;
	struct vp_user_registers next = {.known = BIT(arch->registers) - 1};

	if (!is_known(walk, arch->sp))
		return fail(walk, VP_CHAIN_NO_REGISTER);
	for (unsigned i = 0; i < arch->registers; i++) {
		unsigned number = arch->signal_order ? arch->signal_order[i] : i;
		if (!read_word(walk, at + i * WORD, &next.value[number]))
			return false;
	}
	walk->now = next;
	walk->exact = true;
	return true;
}

/* Unwinds one frame of a function that has not used the stack yet. */
static bool step_by_return(struct walk *walk)
{
	const struct vp_user_arch *arch = walk->program->arch;
	uint64_t *sp = &walk->now.value[arch->sp], *ip = &walk->now.value[arch->ip];

	if (arch->link != VP_DWARF_NONE) {
		if (!is_known(walk, arch->link))
			return fail(walk, VP_CHAIN_NO_REGISTER);
		*ip = address_of(walk, walk->now.value[arch->link]);
		walk->now.known &= ~BIT(arch->link);
	} else {
		if (!read_word(walk, *sp, ip))
			return false;
		*sp += WORD;
	}
	walk->exact = false;
	return true;
}

/* Whether the address is in executable memory. */
static bool is_call(const struct walk *walk, uint64_t ip)
{
	const struct vp_user_program *program = walk->program;

	return ip && ip < USER_END && program->is_code(program->context, ip - 1);
}

/* The innermost function may have no frame yet: its caller is in the link register then. That can
 * also be an old return address, so that readers check it (VP_CHAIN_LINK). */
static void add_link(struct walk *walk, uint64_t caller)
{
	const struct vp_user_arch *arch = walk->program->arch;
	struct vp_user_chain *ret = walk->ret;

	if (arch->link == VP_DWARF_NONE || ret->count != 1 || !walk->exact ||
	    !is_known(walk, arch->link))
		return;
	uint64_t link = address_of(walk, walk->now.value[arch->link]);
	if (link == caller || !is_call(walk, link) || is_generated(walk, walk->now.value[arch->ip]))
		return;
	ret->ips[ret->count] = link;
	ret->fps[ret->count++] = 0;
	ret->has_link = true;
}

/* Unwinds one frame by the frame pointer, which points to the caller's and the return address. With
 * a link register, the rest of the caller's frame is above both, and its stack pointer unknown. */
static bool step_by_pointer(struct walk *walk)
{
	const struct vp_user_arch *arch = walk->program->arch;
	uint64_t bp = address_of(walk, walk->now.value[arch->fp]), next, ip;

	if (!is_known(walk, arch->fp))
		return fail(walk, VP_CHAIN_NO_TABLE);
	/* Frame pointers end with 0. An interrupted function need not have one. */
	if (!bp)
		return fail(walk, walk->exact ? VP_CHAIN_NO_TABLE : VP_CHAIN_WHOLE);
	if (bp % WORD || bp < walk->now.value[arch->sp] || bp >= USER_END)
		return fail(walk, VP_CHAIN_NO_TABLE);
	if (!read_word(walk, bp, &next) || !read_word(walk, bp + WORD, &ip))
		return false;
	ip = address_of(walk, ip);
	if (ip && !walk->program->is_code(walk->program->context, ip - 1))
		return fail(walk, VP_CHAIN_NO_TABLE);
	add_link(walk, ip);
	walk->now = (struct vp_user_registers){.known = BIT(arch->fp) | BIT(arch->ip)};
	if (arch->link == VP_DWARF_NONE)
		walk->now.known |= BIT(arch->sp);
	walk->now.value[arch->fp] = next;
	walk->now.value[arch->sp] = bp + 2UL * WORD;
	walk->now.value[arch->ip] = ip;
	walk->exact = false;
	return true;
}

static enum vp_user_step step_in_generated(struct walk *walk)
{
	const struct vp_user_program *program = walk->program;
	const struct vp_user_arch *arch = program->arch;
	struct vp_user_registers next = walk->now;
	enum vp_user_step result =
	    program->step ? program->step(program->context, &next, walk->exact) : VP_USER_STEP_NONE;

	if (result != VP_USER_STEP_DONE)
		return result;
	/* A caller's frame is at a higher address, except that of a function that has not used the
	 * stack yet. */
	if (next.value[arch->sp] < walk->now.value[arch->sp] ||
	    (next.value[arch->sp] == walk->now.value[arch->sp] &&
	     (arch->link == VP_DWARF_NONE || !walk->exact)))
		return VP_USER_STEP_FAILED;
	walk->now = next;
	walk->exact = false;
	walk->ret->by_table++;
	return result;
}

/* Notes the innermost frame of code without an unwind table: it need not have a frame pointer. */
static void note_untabled(struct walk *walk)
{
	if (walk->untabled.exists || !is_known(walk, walk->program->arch->sp))
		return;
	walk->untabled = (struct untabled){true, walk->now, walk->ret->count, walk->ret->by_table};
}

/* Unwinds one frame of code without an unwind table. */
static bool step_without_table(struct walk *walk)
{
	const struct vp_user_program *program = walk->program;
	uint64_t ip = walk->now.value[program->arch->ip];

	switch (step_in_generated(walk)) {
	case VP_USER_STEP_DONE:
		return true;
	case VP_USER_STEP_FAILED:
		return fail(walk, VP_CHAIN_NO_TABLE);
	default:
		break;
	}
	if (!is_generated(walk, ip) &&
	    program->arch->is_signal_return(program->read, program->context, ip))
		return step_by_signal(walk);
	if (walk->exact && program->arch->is_plt(program->read, program->context, ip))
		return step_by_return(walk);
	note_untabled(walk);
	return step_by_pointer(walk);
}

static bool step(struct walk *walk)
{
	const struct vp_user_program *program = walk->program;
	uint64_t ip = walk->now.value[program->arch->ip];
	struct vp_slice expressions = {"", 0};
	struct vp_cfi_row row;

	switch (program->find(program->context, walk->exact ? ip : ip - 1, &row, &expressions)) {
	case VP_CFI_FOUND:
		return step_by_row(walk, &row, expressions);
	case VP_CFI_BAD:
		return fail(walk, VP_CHAIN_BAD_TABLE);
	default:
		return step_without_table(walk);
	}
}

/* Whether the address is in executable memory, so that it is a frame. */
static bool is_frame(struct walk *walk)
{
	uint64_t ip = walk->now.value[walk->program->arch->ip];

	if (!ip)
		return fail(walk, VP_CHAIN_WHOLE);
	return (ip < USER_END && ip == address_of(walk, ip) &&
		walk->program->is_code(walk->program->context, walk->exact ? ip : ip - 1)) ||
	       fail(walk, VP_CHAIN_BAD_TABLE);
}

/* Appends the frame that the walk is at. */
static void chain_add(struct walk *walk)
{
	struct vp_user_chain *ret = walk->ret;
	const struct vp_user_arch *arch = walk->program->arch;
	uint64_t ip = walk->now.value[arch->ip];

	/* The first address is not marked: it is an instruction in any case. */
	ret->ips[ret->count] = ip + (ret->count && walk->exact);
	ret->fps[ret->count++] = is_known(walk, arch->fp) ? walk->now.value[arch->fp] : 0;
}

/* Walks as far as tables and frame pointers lead. */
static void walk_on(struct walk *walk)
{
	struct vp_user_chain *ret = walk->ret;
	uint32_t by_table;

	ret->end = VP_CHAIN_TOO_DEEP;
	while (ret->count < VP_CHAIN_LONGEST) {
		by_table = ret->by_table;
		if (!step(walk) || !is_frame(walk)) {
			ret->end = walk->end;
			return;
		}
		/* Frame pointers that lead to code with tables were right. */
		if (ret->by_table != by_table)
			walk->untabled.exists = false;
		chain_add(walk);
	}
}

/* A return address that may be that of a frame without a table. */
struct guess {
	uint64_t at, ip; /* where it is on the stack, and its value */
	bool is_called;  /* a function with a table was called there */
};

static enum vp_user_call call_before(const struct walk *walk, uint64_t ip, uint64_t *target)
{
	const struct vp_user_program *program = walk->program;

	*target = 0;
	return program->arch->call_before(program->read, program->context, ip, target);
}

/* Whether the word is a return address in a function with an unwind table. */
static bool is_caller(struct walk *walk, struct guess *guess)
{
	const struct vp_user_program *program = walk->program;
	struct vp_slice expressions;
	struct vp_cfi_row row;
	uint64_t target;

	if (!guess->ip || guess->ip >= USER_END ||
	    !program->has_table(program->context, guess->ip - 1))
		return false;
	const enum vp_user_call call = call_before(walk, guess->ip, &target);
	if (call == VP_USER_CALL_NONE ||
	    program->find(program->context, guess->ip - 1, &row, &expressions) != VP_CFI_FOUND)
		return false;
	guess->is_called = target && program->has_table(program->context, target);
	return true;
}

/* Whether a call of the target leads to the function: directly, or by a jump in the target's first
 * bytes, as at the end of functions whose last call needs no frame. */
static bool leads_to(const struct walk *walk, uint64_t target, uint64_t function)
{
	enum { SEARCHED = 2048, JUMP = 0xe9, SIZE = 5 };
	const struct vp_user_program *program = walk->program;
	uint8_t code[SEARCHED];
	uint32_t distance;

	if (target == function)
		return true;
	for (unsigned read = 0; read < SEARCHED; read += WORD)
		if (!program->read(program->context, target + read, code + read, WORD))
			return false;
	for (unsigned at = 0; at + SIZE <= SEARCHED; at++) {
		memcpy(&distance, code + at + 1, sizeof(distance));
		if (code[at] == JUMP &&
		    (uint32_t)(target + at + SIZE) + distance == (uint32_t)function)
			return true;
	}
	return false;
}

/* Whether the call in its caller's frame can have led to the frame's function. */
static bool is_called_by(struct walk *walk, uint64_t ip, uint64_t caller)
{
	const struct vp_user_program *program = walk->program;
	struct vp_slice expressions;
	struct vp_cfi_row row;
	uint64_t target;

	return call_before(walk, caller, &target) != VP_USER_CALL_TARGET ||
	       program->find(program->context, ip - 1, &row, &expressions) != VP_CFI_FOUND ||
	       leads_to(walk, target, ip - 1 - row.into);
}

/*
 * Whether the chain can continue with the guess. Before generated code ran, its caller may have
 * called other functions, which have left return addresses below its frame. Calls in such a chain
 * lead to other functions than those that are called there. And if a guess is where a function with
 * a table was called, which then jumped to generated code, its own caller must have called it.
 */
static bool is_likely(struct walk *walk, const struct guess *guess, uint32_t number)
{
	const struct vp_user_chain *ret = walk->ret;
	uint64_t ip = guess->ip, target;

	if (guess->is_called &&
	    call_before(walk, ret->ips[number + 1], &target) != VP_USER_CALL_TARGET)
		return false;
	for (uint32_t i = number + 1; i < ret->count && i <= number + CHECKED; i++) {
		if (!is_called_by(walk, ip, ret->ips[i]))
			return false;
		ip = ret->ips[i];
	}
	return true;
}

/* The caller's frame pointer: functions push it first, or leave it as it is. */
static void guess_pointer(struct walk *walk, uint64_t at)
{
	const struct vp_user_program *program = walk->program;
	const unsigned fp = program->arch->fp;
	uint64_t pushed;

	if (!program->read(program->context, at - WORD, &pushed, sizeof(pushed)) ||
	    pushed - at >= MAX_FRAME)
		pushed = walk->untabled.registers.value[fp];
	if (pushed - at >= MAX_FRAME)
		return;
	walk->now.value[fp] = pushed;
	walk->now.known |= BIT(fp);
}

/* Continues as if the guess were the return address of the frame without a table. */
static void walk_from_guess(struct walk *walk, const struct guess *guess)
{
	const struct vp_user_arch *arch = walk->program->arch;
	struct vp_user_chain *ret = walk->ret;

	ret->count = walk->untabled.count;
	ret->by_table = walk->untabled.by_table;
	walk->now = (struct vp_user_registers){.known = BIT(arch->sp) | BIT(arch->ip)};
	walk->now.value[arch->sp] = guess->at + WORD;
	walk->now.value[arch->ip] = guess->ip;
	walk->exact = false;
	guess_pointer(walk, guess->at);
	walk->untabled.exists = false;
	chain_add(walk);
	ret->ips[ret->count - 1] |= VP_CHAIN_GUESSED_IP;
	walk_on(walk);
}

static bool guess_caller(struct walk *walk, unsigned guesses);

/* Whether the chain from the guess is whole. Callers in it may be guessed, too. */
/* NOLINTNEXTLINE(misc-no-recursion): MAX_GUESSES deep */
static bool try_guess(struct walk *walk, const struct guess *guess, unsigned guesses)
{
	const uint32_t number = walk->untabled.count;

	walk_from_guess(walk, guess);
	/* The outermost function does not call generated code itself. */
	if (walk->ret->count < number + 2 || !is_likely(walk, guess, number))
		return false;
	return walk->ret->end == VP_CHAIN_WHOLE ||
	       (walk->untabled.exists && walk->ret->end != VP_CHAIN_TOO_DEEP &&
		guesses < MAX_GUESSES && guess_caller(walk, guesses + 1));
}

/* Reads the next word of the stack for a guess, which follows the last one, or a page that has
 * never been used; false: no more. */
static bool next_word(struct walk *walk, uint64_t *next, struct guess *guess)
{
	const struct vp_user_program *program = walk->program;

	while (walk->words) {
		const uint64_t at = *next;
		const uint64_t left = (PAGE - at % PAGE) / WORD;
		if (program->read(program->context, at, &guess->ip, WORD)) {
			guess->at = at;
			*next = at + WORD;
			walk->words--;
			return true;
		}
		*next = at + left * WORD;
		walk->words -= left < walk->words ? (unsigned)left : walk->words;
	}
	return false;
}

/* Whether the thread's last guess is right for a frame with that stack pointer, too. */
/* NOLINTNEXTLINE(misc-no-recursion): MAX_GUESSES deep */
static bool last_is_right(struct walk *walk, uint64_t sp)
{
	const struct vp_user_program *program = walk->program;
	const struct vp_user_guess *last = program->last;
	struct guess guess;

	if (!last || !last->at || last->sp != sp ||
	    !program->read(program->context, last->at, &guess.ip, sizeof(guess.ip)) ||
	    guess.ip != last->ip)
		return false;
	guess.at = last->at;
	return is_caller(walk, &guess) && try_guess(walk, &guess, 1);
}

/* Guesses the caller of a frame without a table: the first word of the stack that is a return
 * address, and from which the chain is whole. */
/* NOLINTNEXTLINE(misc-no-recursion): MAX_GUESSES deep */
static bool guess_caller(struct walk *walk, unsigned guesses)
{
	const struct untabled from = walk->untabled;
	const uint64_t sp = from.registers.value[walk->program->arch->sp];
	uint64_t next = (sp + WORD - 1) & -(uint64_t)WORD;
	struct guess guess;

	if (guesses == 1 && last_is_right(walk, sp))
		return true;
	walk->untabled = from;
	while (next_word(walk, &next, &guess)) {
		if (!is_caller(walk, &guess))
			continue;
		if (!walk->tries)
			return false;
		walk->tries--;
		walk->untabled = from;
		if (!try_guess(walk, &guess, guesses))
			continue;
		if (guesses == 1 && walk->program->last)
			*walk->program->last = (struct vp_user_guess){sp, guess.at, guess.ip};
		return true;
	}
	return false;
}

static void walk_begin(struct walk *walk, const struct vp_user_program *program,
		       const struct vp_user_registers *from, struct vp_user_chain *ret)
{
	*walk = (struct walk){.program = program,
			      .now = *from,
			      .exact = true,
			      .ret = ret,
			      .words = MAX_WORDS,
			      .tries = MAX_TRIES};
	ret->count = 0;
	ret->by_table = 0;
	ret->has_link = false;
	ret->guessed = false;
	chain_add(walk);
	walk_on(walk);
}

void vp_user_chain_make(const struct vp_user_program *program, const struct vp_user_registers *from,
			struct vp_user_chain *ret)
{
	struct walk walk;

	walk_begin(&walk, program, from, ret);
}

bool vp_user_chain_guess(const struct vp_user_program *program,
			 const struct vp_user_registers *from, struct vp_user_chain *ret)
{
	struct walk walk;

	if (!program->arch->call_before)
		return false;
	walk_begin(&walk, program, from, ret);
	ret->guessed = ret->end != VP_CHAIN_WHOLE && ret->end != VP_CHAIN_TOO_DEEP &&
		       walk.untabled.exists && guess_caller(&walk, 1);
	return ret->guessed;
}
