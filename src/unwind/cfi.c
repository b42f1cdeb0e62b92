/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Implements DWARF 4, 6.4 "Call Frame Information" and 2.5 "DWARF Expressions". */
#include "unwind/cfi.h"

enum { MAX_REMEMBERED = 8, MAX_STACK = 16, MAX_OPERATIONS = 64, MAX_EXPRESSION = 256 };

/* Opcodes. The first three have an operand in the low six bits. */
enum {
	ADVANCE_LOC = 0x40,
	OFFSET = 0x80,
	RESTORE = 0xc0,
	NOP = 0x00,
	ADVANCE_LOC1 = 0x02,
	ADVANCE_LOC2 = 0x03,
	ADVANCE_LOC4 = 0x04,
	OFFSET_EXTENDED = 0x05,
	RESTORE_EXTENDED = 0x06,
	UNDEFINED = 0x07,
	SAME_VALUE = 0x08,
	REGISTER = 0x09,
	REMEMBER_STATE = 0x0a,
	RESTORE_STATE = 0x0b,
	DEF_CFA = 0x0c,
	DEF_CFA_REGISTER = 0x0d,
	DEF_CFA_OFFSET = 0x0e,
	DEF_CFA_EXPRESSION = 0x0f,
	EXPRESSION = 0x10,
	OFFSET_EXTENDED_SF = 0x11,
	DEF_CFA_SF = 0x12,
	DEF_CFA_OFFSET_SF = 0x13,
	VAL_OFFSET = 0x14,
	VAL_OFFSET_SF = 0x15,
	VAL_EXPRESSION = 0x16,
	/* 64-bit Arm: the return address is signed, or no longer. Signatures are always removed. */
	AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	AARCH64_NEGATE_RA_STATE = 0x2d,
	GNU_ARGS_SIZE = 0x2e,
	GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct run {
	const struct vp_eh_frame *tables;
	const struct vp_eh_frame_entry *entry;
	struct vp_cursor cursor;
	uint64_t location, address; /* of the present row; of the row to find */
	struct vp_cfi_row *row;
	struct vp_cfi_row initial; /* after the CIE's instructions */
	struct vp_cfi_row remembered[MAX_REMEMBERED];
	unsigned n_remembered;
	bool bad;
};

static uint8_t cfi_byte(struct vp_cursor *cursor)
{
	struct vp_slice slice = vp_cursor_bytes(cursor, 1);

	return slice.size ? (uint8_t)slice.bytes[0] : 0;
}

static void set_rule(struct run *run, uint64_t number, enum vp_cfi_kind kind, int64_t value)
{
	if (value != (int32_t)value)
		run->bad = true;
	else if (number < VP_DWARF_REGISTERS) /* other registers are not needed */
		run->row->of[number] =
		    (struct vp_cfi_rule){.kind = (uint8_t)kind, .value = (int32_t)value};
}

static int64_t factored(const struct run *run, int64_t value)
{
	int64_t ret;

	return __builtin_mul_overflow(value, run->entry->data_factor, &ret) ? INT64_MAX : ret;
}

/* Sets a rule with a signed or unsigned factored operand. */
static void set_factored(struct run *run, uint64_t number, enum vp_cfi_kind kind, bool is_signed)
{
	int64_t value =
	    is_signed ? vp_leb128_signed(&run->cursor) : (int64_t)vp_leb128(&run->cursor);

	set_rule(run, number, kind, factored(run, value));
}

static void restore_rule(struct run *run, uint64_t number)
{
	if (number < VP_DWARF_REGISTERS)
		run->row->of[number] = run->initial.of[number];
}

static void set_cfa(struct run *run, uint64_t number, int64_t offset)
{
	if (number >= VP_DWARF_REGISTERS || offset != (int32_t)offset) {
		run->bad = true;
		return;
	}
	run->row->cfa = (struct vp_cfi_rule){.kind = VP_CFI_IS, .value = (int32_t)offset};
	run->row->cfa_register = (uint8_t)number;
}

/* Reads an expression. */
static struct vp_cfi_rule next_expression(struct run *run, enum vp_cfi_kind kind)
{
	uint64_t size = vp_leb128(&run->cursor);
	const char *start = run->tables->frame.bytes;
	ptrdiff_t offset = run->cursor.next - start;

	vp_cursor_bytes(&run->cursor, size);
	run->bad |= size > MAX_EXPRESSION || offset > INT32_MAX;
	return (struct vp_cfi_rule){
	    .kind = (uint8_t)kind, .size = (uint16_t)size, .value = (int32_t)offset};
}

static void set_expression(struct run *run, enum vp_cfi_kind kind)
{
	uint64_t number = vp_leb128(&run->cursor);
	struct vp_cfi_rule rule = next_expression(run, kind);

	if (number < VP_DWARF_REGISTERS)
		run->row->of[number] = rule;
}

static void remember(struct run *run)
{
	if (run->n_remembered == MAX_REMEMBERED)
		run->bad = true;
	else
		run->remembered[run->n_remembered++] = *run->row;
}

static void restore_state(struct run *run)
{
	if (!run->n_remembered)
		run->bad = true;
	else
		*run->row = run->remembered[--run->n_remembered];
}

static void execute_cfa(struct run *run, uint8_t code)
{
	struct vp_cursor *cursor = &run->cursor;
	uint64_t number = run->row->cfa_register;

	switch (code) {
	case DEF_CFA:
		number = vp_leb128(cursor);
		set_cfa(run, number, (int64_t)vp_leb128(cursor));
		break;
	case DEF_CFA_SF:
		number = vp_leb128(cursor);
		set_cfa(run, number, factored(run, vp_leb128_signed(cursor)));
		break;
	case DEF_CFA_REGISTER:
		set_cfa(run, vp_leb128(cursor), run->row->cfa.value);
		break;
	case DEF_CFA_OFFSET:
		set_cfa(run, number, (int64_t)vp_leb128(cursor));
		break;
	case DEF_CFA_OFFSET_SF:
		set_cfa(run, number, factored(run, vp_leb128_signed(cursor)));
		break;
	case DEF_CFA_EXPRESSION:
		run->row->cfa = next_expression(run, VP_CFI_IS_EXPRESSION);
		break;
	default:
		run->bad = true;
	}
}

static void execute_rule(struct run *run, uint8_t code)
{
	struct vp_cursor *cursor = &run->cursor;
	uint64_t number;

	switch (code) {
	case OFFSET_EXTENDED:
		set_factored(run, vp_leb128(cursor), VP_CFI_AT, false);
		break;
	case OFFSET_EXTENDED_SF:
		set_factored(run, vp_leb128(cursor), VP_CFI_AT, true);
		break;
	case GNU_NEGATIVE_OFFSET_EXTENDED:
		number = vp_leb128(cursor);
		set_rule(run, number, VP_CFI_AT, factored(run, -(int64_t)vp_leb128(cursor)));
		break;
	case VAL_OFFSET:
		set_factored(run, vp_leb128(cursor), VP_CFI_IS, false);
		break;
	case VAL_OFFSET_SF:
		set_factored(run, vp_leb128(cursor), VP_CFI_IS, true);
		break;
	case RESTORE_EXTENDED:
		restore_rule(run, vp_leb128(cursor));
		break;
	case UNDEFINED:
		set_rule(run, vp_leb128(cursor), VP_CFI_UNDEFINED, 0);
		break;
	case SAME_VALUE:
		set_rule(run, vp_leb128(cursor), VP_CFI_SAME, 0);
		break;
	case REGISTER:
		number = vp_leb128(cursor);
		set_rule(run, number, VP_CFI_REGISTER, (int64_t)vp_leb128(cursor));
		break;
	case EXPRESSION:
		set_expression(run, VP_CFI_AT_EXPRESSION);
		break;
	case VAL_EXPRESSION:
		set_expression(run, VP_CFI_IS_EXPRESSION);
		break;
	default:
		execute_cfa(run, code);
	}
}

static void cfi_execute(struct run *run, uint8_t code)
{
	struct vp_cursor *cursor = &run->cursor;
	uint64_t advance = 0;

	switch (code) {
	case NOP:
	case AARCH64_NEGATE_RA_STATE:
	case AARCH64_NEGATE_RA_STATE_WITH_PC:
		break;
	case ADVANCE_LOC1:
		advance = cfi_byte(cursor);
		break;
	case ADVANCE_LOC2:
		advance = vp_cursor_u16(cursor);
		break;
	case ADVANCE_LOC4:
		advance = vp_cursor_u32(cursor);
		break;
	case REMEMBER_STATE:
		remember(run);
		break;
	case RESTORE_STATE:
		restore_state(run);
		break;
	case GNU_ARGS_SIZE:
		vp_leb128(cursor);
		break;
	default:
		execute_rule(run, code);
	}
	run->location += advance * run->entry->code_factor;
}

/* Executes instructions up to the row of the address; false: there is no such row. */
static bool execute_all(struct run *run, uint64_t from, uint64_t to, uint32_t *work)
{
	run->cursor = vp_cursor_of((const char *)run->tables->frame.bytes + from, to - from);
	while (vp_cursor_left(&run->cursor) && !run->bad) {
		uint64_t location = run->location;
		uint8_t code = cfi_byte(&run->cursor), operand = code & 0x3f;
		if (!*work)
			return false;
		--*work;
		if ((code & 0xc0) == ADVANCE_LOC)
			run->location += operand * run->entry->code_factor;
		else if ((code & 0xc0) == OFFSET)
			set_factored(run, operand, VP_CFI_AT, false);
		else if ((code & 0xc0) == RESTORE)
			restore_rule(run, operand);
		else
			cfi_execute(run, code);
		if (run->location < location) /* address overflow */
			return false;
		if (run->location > run->address) /* the row is complete */
			return vp_cursor_ok(&run->cursor);
	}
	return vp_cursor_ok(&run->cursor) && !run->bad;
}

/* Sums up the rules of all registers. */
static void sum_up(struct vp_cfi_row *row)
{
	for (unsigned i = 0; i < VP_DWARF_REGISTERS; i++) {
		uint8_t kind = row->of[i].kind;
		row->changed |= (uint64_t)(kind != VP_CFI_SAME) << i;
		row->reads_registers |= kind == VP_CFI_REGISTER || kind == VP_CFI_AT_EXPRESSION ||
					kind == VP_CFI_IS_EXPRESSION;
	}
}

enum vp_cfi_result vp_cfi_find(const struct vp_eh_frame *tables, uint64_t address, uint32_t *work,
			       struct vp_cfi_row *ret)
{
	struct vp_eh_frame_entry entry;

	*ret = (struct vp_cfi_row){.cfa = {.kind = VP_CFI_UNDEFINED}};
	if (!vp_eh_frame_find(tables, address, &entry))
		return VP_CFI_NONE;
	if (entry.return_register >= VP_DWARF_REGISTERS)
		return VP_CFI_BAD;
	struct run run = {.tables = tables,
			  .entry = &entry,
			  .location = entry.start,
			  .address = address,
			  .row = ret};
	ret->return_register = (uint8_t)entry.return_register;
	ret->is_signal = entry.is_signal;
	ret->into = (uint32_t)(address - entry.start);
	if (!execute_all(&run, entry.first, entry.first_end, work))
		return VP_CFI_BAD;
	run.initial = *ret;
	if (!execute_all(&run, entry.own, entry.own_end, work) || ret->cfa.kind == VP_CFI_UNDEFINED)
		return VP_CFI_BAD;
	sum_up(ret);
	return VP_CFI_FOUND;
}

/* Opcodes of expressions. */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

struct computing {
	struct vp_cursor cursor;
	const struct vp_cfi_state *state;
	uint64_t stack[MAX_STACK];
	unsigned depth;
	bool failed;
};

static void cfi_push(struct computing *computing, uint64_t value)
{
	if (computing->depth == MAX_STACK)
		computing->failed = true;
	else
		computing->stack[computing->depth++] = value;
}

static uint64_t cfi_pop(struct computing *computing)
{
	if (computing->depth)
		return computing->stack[--computing->depth];
	computing->failed = true;
	return 0;
}

/* Pushes a copy of the value `below` the top. */
static void push_again(struct computing *computing, unsigned below)
{
	if (below >= computing->depth)
		computing->failed = true;
	else
		cfi_push(computing, computing->stack[computing->depth - 1 - below]);
}

static void push_register(struct computing *computing, uint64_t number)
{
	int64_t offset = vp_leb128_signed(&computing->cursor);

	if (number >= VP_DWARF_REGISTERS || !(computing->state->known & 1ULL << number))
		computing->failed = true;
	else
		cfi_push(computing, computing->state->registers[number] + (uint64_t)offset);
}

/* Pushes a constant of 1, 2, 4 or 8 bytes, unsigned or signed. */
static void push_constant(struct computing *computing, uint8_t code)
{
	struct vp_cursor *cursor = &computing->cursor;
	bool is_signed = (code - OP_CONST1U) & 1;
	uint64_t value;

	switch ((code - OP_CONST1U) / 2) {
	case 0:
		value = cfi_byte(cursor);
		value = is_signed ? (uint64_t)(int8_t)value : value;
		break;
	case 1:
		value = vp_cursor_u16(cursor);
		value = is_signed ? (uint64_t)(int16_t)value : value;
		break;
	case 2:
		value = vp_cursor_u32(cursor);
		value = is_signed ? (uint64_t)(int32_t)value : value;
		break;
	default:
		value = vp_cursor_u64(cursor);
	}
	cfi_push(computing, value);
}

static void dereference(struct computing *computing)
{
	const struct vp_cfi_state *state = computing->state;
	uint64_t value, address = cfi_pop(computing);

	if (computing->failed || !state->read(state->context, address, &value, sizeof(value)))
		computing->failed = true;
	else
		cfi_push(computing, value);
}

static uint64_t shift_signed(uint64_t value, uint64_t by)
{
	uint64_t sign = value >> 63 ? UINT64_MAX : 0;

	return by > 63 ? sign : by ? value >> by | sign << (64 - by) : value;
}

/* Operations on the two topmost values; `b` is the top. */
static void compute_binary(struct computing *computing, uint8_t code)
{
	uint64_t b = cfi_pop(computing), a = cfi_pop(computing), result = 0;

	switch (code) {
	case OP_AND:
		result = a & b;
		break;
	case OP_OR:
		result = a | b;
		break;
	case OP_XOR:
		result = a ^ b;
		break;
	case OP_PLUS:
		result = a + b;
		break;
	case OP_MINUS:
		result = a - b;
		break;
	case OP_MUL:
		result = a * b;
		break;
	case OP_SHL:
		result = b > 63 ? 0 : a << b;
		break;
	case OP_SHR:
		result = b > 63 ? 0 : a >> b;
		break;
	case OP_SHRA:
		result = shift_signed(a, b);
		break;
	case OP_EQ:
		result = a == b;
		break;
	case OP_NE:
		result = a != b;
		break;
	case OP_GE:
		result = (int64_t)a >= (int64_t)b;
		break;
	case OP_GT:
		result = (int64_t)a > (int64_t)b;
		break;
	case OP_LE:
		result = (int64_t)a <= (int64_t)b;
		break;
	case OP_LT:
		result = (int64_t)a < (int64_t)b;
		break;
	default:
		computing->failed = true;
	}
	cfi_push(computing, result);
}

/* Stack operations, and operations with one operand. */
static void compute_other(struct computing *computing, uint8_t code)
{
	switch (code) {
	case OP_NOP:
		break;
	case OP_DEREF:
		dereference(computing);
		break;
	case OP_DUP:
		push_again(computing, 0);
		break;
	case OP_OVER:
		push_again(computing, 1);
		break;
	case OP_PICK:
		push_again(computing, cfi_byte(&computing->cursor));
		break;
	case OP_DROP:
		cfi_pop(computing);
		break;
	case OP_SWAP: {
		uint64_t top = cfi_pop(computing), below = cfi_pop(computing);
		cfi_push(computing, top);
		cfi_push(computing, below);
		break;
	}
	case OP_NEG:
		cfi_push(computing, -cfi_pop(computing));
		break;
	case OP_NOT:
		cfi_push(computing, ~cfi_pop(computing));
		break;
	case OP_PLUS_UCONST: {
		uint64_t value = cfi_pop(computing);
		cfi_push(computing, value + vp_leb128(&computing->cursor));
		break;
	}
	default:
		compute_binary(computing, code);
	}
}

static void compute_one(struct computing *computing, uint8_t code)
{
	if (code >= OP_CONST1U && code <= OP_CONST8S)
		push_constant(computing, code);
	else if (code == OP_CONSTU)
		cfi_push(computing, vp_leb128(&computing->cursor));
	else if (code == OP_CONSTS)
		cfi_push(computing, (uint64_t)vp_leb128_signed(&computing->cursor));
	else if (code >= OP_LIT0 && code < OP_LIT0 + 32)
		cfi_push(computing, code - OP_LIT0);
	else if (code >= OP_BREG0 && code < OP_BREG0 + 32)
		push_register(computing, code - OP_BREG0);
	else if (code == OP_BREGX)
		push_register(computing, vp_leb128(&computing->cursor));
	else
		compute_other(computing, code);
}

bool vp_cfi_compute(struct vp_slice expression, const struct vp_cfi_state *state,
		    const uint64_t *start, uint64_t *ret)
{
	struct computing computing = {
	    .cursor = vp_cursor_of(expression.bytes, expression.size),
	    .state = state,
	};

	if (start)
		cfi_push(&computing, *start);
	for (unsigned i = 0; vp_cursor_left(&computing.cursor) && !computing.failed; i++) {
		if (i == MAX_OPERATIONS)
			return false;
		compute_one(&computing, cfi_byte(&computing.cursor));
	}
	*ret = cfi_pop(&computing);
	return !computing.failed && vp_cursor_ok(&computing.cursor);
}
