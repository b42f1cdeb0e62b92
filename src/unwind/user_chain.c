/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/user_chain.h"

#include "schema/chain_end.h"
#include "unwind/cfi.h"

#include <string.h>

#include "base/cursor.h"
#include "base/macros.h"

enum { WORD = 8 };
/* Upper limit of user space with 5 levels of page tables. */
#define USER_END (1ULL << 56)
#define BIT(number) (1U << (number))

struct walk {
	const struct vp_user_program *program;
	struct vp_user_registers now;
	bool exact; /* RIP is the address of an instruction, not a return address */
	struct vp_user_chain *ret;
	enum vp_chain_end end; /* reason why the last step failed */
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

static bool compute(struct walk *walk, const struct vp_cfi_rule *rule, struct vp_slice expressions,
		    const uint64_t *start, uint64_t *ret)
{
	const struct vp_cfi_state state = {.registers = walk->now.value,
					   .known = walk->now.known,
					   .read = walk->program->read,
					   .context = walk->program->context};
	size_t at = (size_t)rule->value;

	if (rule->value < 0 || at > expressions.size || rule->size > expressions.size - at)
		return fail(walk, VP_CHAIN_BAD_TABLE);
	return vp_cfi_compute((struct vp_slice){expressions.bytes + at, rule->size}, &state, start,
			      ret) ||
	       fail(walk, VP_CHAIN_BAD_TABLE);
}

static bool find_cfa(struct walk *walk, const struct vp_cfi_row *row, struct vp_slice expressions,
		     uint64_t *ret)
{
	if (row->cfa.kind == VP_CFI_IS_EXPRESSION)
		return compute(walk, &row->cfa, expressions, NULL, ret);
	if (!is_known(walk, row->cfa_register))
		return fail(walk, VP_CHAIN_NO_REGISTER);
	*ret = walk->now.value[row->cfa_register] + (uint64_t)(int64_t)row->cfa.value;
	return true;
}

/* The caller's value of a register; *known: whether it is known. */
static bool find_register(struct walk *walk, const struct vp_cfi_row *row,
			  struct vp_slice expressions, uint64_t cfa, unsigned number,
			  struct vp_user_registers *ret)
{
	const struct vp_cfi_rule *rule = &row->of[number];
	uint64_t *value = &ret->value[number], offset = (uint64_t)(int64_t)rule->value;
	bool found = true, known = true;

	switch ((enum vp_cfi_kind)rule->kind) {
	case VP_CFI_SAME:
		*value = number == VP_DWARF_RSP ? cfa : walk->now.value[number];
		known = number == VP_DWARF_RSP || is_known(walk, number);
		break;
	case VP_CFI_UNDEFINED:
		known = false;
		break;
	case VP_CFI_AT:
		found = read_word(walk, cfa + offset, value);
		break;
	case VP_CFI_IS:
		*value = cfa + offset;
		break;
	case VP_CFI_REGISTER:
		known = offset < VP_DWARF_REGISTERS && is_known(walk, (unsigned)offset);
		*value = known ? walk->now.value[offset] : 0;
		break;
	case VP_CFI_AT_EXPRESSION:
		found =
		    compute(walk, rule, expressions, &cfa, value) && read_word(walk, *value, value);
		break;
	case VP_CFI_IS_EXPRESSION:
		found = compute(walk, rule, expressions, &cfa, value);
		break;
	}
	ret->known |= found && known ? BIT(number) : 0;
	return found;
}

/* Unwinds one frame by a row. */
static bool step_by_row(struct walk *walk, const struct vp_cfi_row *row,
			struct vp_slice expressions)
{
	struct vp_user_registers next = {.known = 0};
	const unsigned ret = row->return_register;
	uint64_t cfa;

	if (row->of[ret].kind == VP_CFI_UNDEFINED)
		return fail(walk, VP_CHAIN_WHOLE);
	if (!find_cfa(walk, row, expressions, &cfa))
		return false;
	/* A caller's frame is at a higher address, except for a signal handler on its own stack. */
	if (!row->is_signal && cfa <= walk->now.value[VP_DWARF_RSP])
		return fail(walk, VP_CHAIN_BAD_TABLE);
	for (unsigned i = 0; i < VP_DWARF_REGISTERS; i++)
		if (!find_register(walk, row, expressions, cfa, i, &next))
			return false;
	/* Without a rule, the return address would be the present frame's. */
	if (row->of[ret].kind == VP_CFI_SAME || !(next.known & BIT(ret)))
		return fail(walk, VP_CHAIN_BAD_TABLE);
	next.value[VP_DWARF_RIP] = next.value[ret];
	next.known |= BIT(VP_DWARF_RIP);
	if (!(next.known & BIT(VP_DWARF_RSP)))
		return fail(walk, VP_CHAIN_NO_REGISTER);
	walk->now = next;
	walk->exact = row->is_signal;
	walk->ret->by_table++;
	return true;
}

/* Signal handlers return to `mov $15, %eax; syscall`. If libc has no unwind table for it, the
 * code is recognized, as in debuggers. */
static bool is_at_signal_return(const struct walk *walk)
{
	static const uint8_t long_form[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t short_form[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	const struct vp_user_program *program = walk->program;
	uint64_t ip = walk->now.value[VP_DWARF_RIP];
	uint8_t code[sizeof(long_form)];

	if (program->is_generated && program->is_generated(program->context, ip))
		return false;
	if (program->read(program->context, ip, code, sizeof(long_form)))
		return !memcmp(code, long_form, sizeof(long_form)) ||
		       !memcmp(code, short_form, sizeof(short_form));
	/* At the end of the code only the short form fits. */
	return program->read(program->context, ip, code, sizeof(short_form)) &&
	       !memcmp(code, short_form, sizeof(short_form));
}

/* RSP points to struct ucontext, which has the registers: struct sigcontext_64 of
 * arch/x86/include/uapi/asm/sigcontext.h. */
static bool step_by_signal(struct walk *walk)
{
	enum { REGISTERS = 40 };
	static const uint8_t order[] = {8,
					9,
					10,
					11,
					12,
					13,
					14,
					15,
					VP_DWARF_RDI,
					VP_DWARF_RSI,
					VP_DWARF_RBP,
					VP_DWARF_RBX,
					VP_DWARF_RDX,
					VP_DWARF_RAX,
					VP_DWARF_RCX,
					VP_DWARF_RSP,
					VP_DWARF_RIP};
	uint64_t at = walk->now.value[VP_DWARF_RSP] + REGISTERS;
	struct vp_user_registers next = {.known = BIT(VP_DWARF_REGISTERS) - 1};

	for (unsigned i = 0; i < VP_ARRAY_SIZE(order); i++)
		if (!read_word(walk, at + i * WORD, &next.value[order[i]]))
			return false;
	walk->now = next;
	walk->exact = true;
	return true;
}

/* Whether the code continues with these bytes; advances past them. */
static bool take_code(const struct walk *walk, uint64_t *ip, const void *bytes, size_t size)
{
	const struct vp_user_program *program = walk->program;
	char code[sizeof(uint64_t)];

	if (size > sizeof(code) || !program->read(program->context, *ip, code, size) ||
	    memcmp(code, bytes, size))
		return false;
	*ip += size;
	return true;
}

/* Recognizes a PLT entry: `endbr64; mov $n, %r11d; bnd jmp *n(%rip)`, of which only the jump is
 * mandatory. Some linkers write no unwind table for it. */
static bool is_in_stub(const struct walk *walk)
{
	uint64_t ip = walk->now.value[VP_DWARF_RIP];

	if (!walk->exact)
		return false;
	take_code(walk, &ip, "\xf3\x0f\x1e\xfa", 4);
	if (take_code(walk, &ip, "\x41\xbb", 2))
		ip += 4;
	take_code(walk, &ip, "\xf2", 1);
	return take_code(walk, &ip, "\xff\x25", 2);
}

/* Unwinds one frame with only a return address on the stack. */
static bool step_by_return(struct walk *walk)
{
	uint64_t *sp = &walk->now.value[VP_DWARF_RSP];

	if (!read_word(walk, *sp, &walk->now.value[VP_DWARF_RIP]))
		return false;
	*sp += WORD;
	walk->exact = false;
	return true;
}

/* Unwinds one frame by the frame pointer, which points to the caller's and the return address. */
static bool step_by_pointer(struct walk *walk)
{
	uint64_t bp = walk->now.value[VP_DWARF_RBP], next, ip;

	if (!is_known(walk, VP_DWARF_RBP))
		return fail(walk, VP_CHAIN_NO_TABLE);
	if (!bp)
		return fail(walk, VP_CHAIN_WHOLE);
	if (bp % WORD || bp < walk->now.value[VP_DWARF_RSP] || bp >= USER_END)
		return fail(walk, VP_CHAIN_NO_TABLE);
	if (!read_word(walk, bp, &next) || !read_word(walk, bp + WORD, &ip))
		return false;
	if (ip && !walk->program->is_code(walk->program->context, ip - 1))
		return fail(walk, VP_CHAIN_NO_TABLE);
	walk->now = (struct vp_user_registers){
	    .known = BIT(VP_DWARF_RBP) | BIT(VP_DWARF_RSP) | BIT(VP_DWARF_RIP),
	    .value = {
		[VP_DWARF_RBP] = next, [VP_DWARF_RSP] = bp + 2UL * WORD, [VP_DWARF_RIP] = ip}};
	walk->exact = false;
	return true;
}

static enum vp_user_step step_in_generated(struct walk *walk)
{
	const struct vp_user_program *program = walk->program;
	struct vp_user_registers next = walk->now;
	enum vp_user_step result =
	    program->step ? program->step(program->context, &next, walk->exact) : VP_USER_STEP_NONE;

	if (result != VP_USER_STEP_DONE)
		return result;
	/* A caller's frame is at a higher address. */
	if (next.value[VP_DWARF_RSP] <= walk->now.value[VP_DWARF_RSP])
		return VP_USER_STEP_FAILED;
	walk->now = next;
	walk->exact = false;
	walk->ret->by_table++;
	return result;
}

/* Unwinds one frame of code without an unwind table. */
static bool step_without_table(struct walk *walk)
{
	switch (step_in_generated(walk)) {
	case VP_USER_STEP_DONE:
		return true;
	case VP_USER_STEP_FAILED:
		return fail(walk, VP_CHAIN_NO_TABLE);
	default:
		if (is_at_signal_return(walk))
			return step_by_signal(walk);
		return is_in_stub(walk) ? step_by_return(walk) : step_by_pointer(walk);
	}
}

static bool step(struct walk *walk)
{
	const struct vp_user_program *program = walk->program;
	uint64_t ip = walk->now.value[VP_DWARF_RIP];
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
	uint64_t ip = walk->now.value[VP_DWARF_RIP];

	if (!ip)
		return fail(walk, VP_CHAIN_WHOLE);
	return (ip < USER_END &&
		walk->program->is_code(walk->program->context, walk->exact ? ip : ip - 1)) ||
	       fail(walk, VP_CHAIN_BAD_TABLE);
}

/* Appends the frame that the walk is at. */
static void chain_add(struct walk *walk)
{
	struct vp_user_chain *ret = walk->ret;
	uint64_t ip = walk->now.value[VP_DWARF_RIP];

	/* The first address is not marked: it is an instruction in any case. */
	ret->ips[ret->count] = ip + (ret->count && walk->exact);
	ret->fps[ret->count++] = is_known(walk, VP_DWARF_RBP) ? walk->now.value[VP_DWARF_RBP] : 0;
}

void vp_user_chain_make(const struct vp_user_program *program, const struct vp_user_registers *from,
			struct vp_user_chain *ret)
{
	struct walk walk = {.program = program, .now = *from, .exact = true, .ret = ret};

	ret->count = 0;
	ret->by_table = 0;
	chain_add(&walk);
	ret->end = VP_CHAIN_TOO_DEEP;
	while (ret->count < VP_CHAIN_FRAMES) {
		if (!step(&walk) || !is_frame(&walk)) {
			ret->end = walk.end;
			return;
		}
		chain_add(&walk);
	}
}
