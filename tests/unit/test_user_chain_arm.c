/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call chains of 64-bit Arm, on made code, rows and stacks. */
#include "unit.h"

#include "unwind/user_chain.h"

enum {
	STACK = 0x20000,
	WORDS = 256,
	/* Functions: without a frame; with a frame record at the stack pointer, below 16 bytes; the
	 * outermost one; without tables; a PLT entry; what a signal handler returns to. */
	LEAF = 0x10000,
	FRAMED = 0x10100,
	OUTER = 0x10200,
	PLAIN = 0x10300,
	PLT = 0x10400,
	SIGNAL = 0x10500,
	FORGED = 0x10600, /* uses the stack, and leaves the return address in x30 */
	MOVED = 0x10700,  /* its return address is in x19 */
	BEYOND = 0x10800, /* in a register that does not exist */
	CODE_END = 0x10900,
	FUNCTION = 0x100,
	SIGNAL_REGISTERS = 312, /* struct rt_sigframe */
};
/* As pointer authentication leaves it. */
#define SIGNED(address) ((address) | 0x5a3f000000000000ULL)

struct made {
	uint64_t stack[WORDS];
	uint32_t plt[5], signal[2];
	bool generated; /* PLAIN is */
};

static bool read_from(const void *from, size_t have, uint64_t at, void *bytes, size_t size)
{
	if (at >= have || size > have - at)
		return false;
	memcpy(bytes, (const char *)from + at, size);
	return true;
}

static bool read_made(void *context, uint64_t address, void *bytes, size_t size)
{
	const struct made *made = context;

	return read_from(made->stack, sizeof(made->stack), address - STACK, bytes, size) ||
	       read_from(made->plt, sizeof(made->plt), address - PLT, bytes, size) ||
	       read_from(made->signal, sizeof(made->signal), address - SIGNAL, bytes, size);
}

static enum vp_cfi_result find_made(void *context, uint64_t address, struct vp_cfi_row *row,
				    struct vp_slice *expressions)
{
	uint64_t function = address & ~(FUNCTION - 1ULL);

	(void)context, (void)expressions;
	*row = (struct vp_cfi_row){.cfa = {.kind = VP_CFI_IS},
				   .cfa_register = VP_DWARF_ARM_SP,
				   .return_register = VP_DWARF_X30};
	if (function == FRAMED) {
		row->cfa.value = 32;
		row->of[VP_DWARF_X29] = (struct vp_cfi_rule){.kind = VP_CFI_AT, .value = -32};
		row->of[VP_DWARF_X30] = (struct vp_cfi_rule){.kind = VP_CFI_AT, .value = -24};
		row->changed = 1ULL << VP_DWARF_X29 | 1ULL << VP_DWARF_X30;
	} else if (function == FORGED) {
		row->cfa.value = 16;
	} else if (function == MOVED || function == BEYOND) {
		row->cfa.value = 16;
		row->of[VP_DWARF_X30] = (struct vp_cfi_rule){
		    .kind = VP_CFI_REGISTER, .value = function == MOVED ? 19 : VP_DWARF_REGISTERS};
		row->changed = 1ULL << VP_DWARF_X30;
		row->reads_registers = true;
	} else if (function == OUTER) {
		row->of[VP_DWARF_X30].kind = VP_CFI_UNDEFINED;
		row->changed = 1ULL << VP_DWARF_X30;
	}
	return function == PLAIN || function == PLT || function == SIGNAL ? VP_CFI_NONE
									  : VP_CFI_FOUND;
}

static bool is_code_made(void *context, uint64_t address)
{
	(void)context;
	return address >= LEAF && address < CODE_END;
}

static bool is_generated_made(void *context, uint64_t address)
{
	const struct made *made = context;

	return made->generated && (address & ~(FUNCTION - 1ULL)) == PLAIN;
}

static struct vp_user_chain found;

/* Registers that are known; x19 has FRAMED's address. */
static uint64_t known_registers = (1ULL << VP_DWARF_ARM_REGISTERS) - 1;

static void unwind(struct made *made, uint64_t ip, uint64_t sp, uint64_t fp, uint64_t link)
{
	const struct vp_user_arch arch = vp_user_arch_arm(48);
	const struct vp_user_program program = {.arch = &arch,
						.read = read_made,
						.find = find_made,
						.is_generated = is_generated_made,
						.is_code = is_code_made,
						.context = made};
	struct vp_user_registers registers = {.known = known_registers};

	registers.value[VP_DWARF_ARM_PC] = ip;
	registers.value[VP_DWARF_ARM_SP] = sp;
	registers.value[VP_DWARF_X29] = fp;
	registers.value[VP_DWARF_X30] = link;
	registers.value[19] = FRAMED + 8;
	vp_user_chain_make(&program, &registers, &found);
}

static void expect_ips(enum vp_chain_end end, const uint64_t *ips, uint32_t count)
{
	assert_int_equal(found.end, end);
	assert_int_equal(found.count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(found.ips[i], ips[i]);
}

#define EXPECT(end, ...)                                                                           \
	expect_ips(end, (const uint64_t[]){__VA_ARGS__},                                           \
		   sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* Two functions with frames, of which the inner one called a function without; signed. */
static struct made two_frames(void)
{
	struct made made = {
	    .stack = {SIGNED(STACK + 32), SIGNED(FRAMED + 0x20), 0, 0, 0, SIGNED(OUTER + 0x10)}};

	return made;
}

static void test_link_register(void **state)
{
	struct made made = two_frames();

	(void)state;
	unwind(&made, LEAF + 4, STACK, 0, SIGNED(FRAMED + 8));
	EXPECT(VP_CHAIN_WHOLE, LEAF + 4, FRAMED + 8, FRAMED + 0x20, OUTER + 0x10);
	assert_int_equal(found.by_table, 3);
	assert_false(found.has_link);
	/* A caller cannot have its return address in x30: its call was there. */
	made.stack[1] = LEAF + 8;
	unwind(&made, LEAF + 4, STACK, 0, FRAMED + 8);
	EXPECT(VP_CHAIN_BAD_TABLE, LEAF + 4, FRAMED + 8, LEAF + 8);
	unwind(&made, FORGED + 4, STACK, 0, FORGED + 8);
	EXPECT(VP_CHAIN_BAD_TABLE, FORGED + 4, FORGED + 8);
}

/* A return address in another register: as far as its value is known. */
static void test_return_address_in_register(void **state)
{
	struct made made = {.stack = {0, 0, STACK + 64, FRAMED + 0x20, 0, 0, 0, OUTER + 0x10}};

	(void)state;
	unwind(&made, MOVED + 4, STACK, 0, 0);
	EXPECT(VP_CHAIN_WHOLE, MOVED + 4, FRAMED + 8, FRAMED + 0x20, OUTER + 0x10);
	known_registers &= ~(1ULL << 19);
	unwind(&made, MOVED + 4, STACK, 0, 0);
	EXPECT(VP_CHAIN_BAD_TABLE, MOVED + 4);
	known_registers |= 1ULL << 19;
	unwind(&made, BEYOND + 4, STACK, 0, 0);
	EXPECT(VP_CHAIN_BAD_TABLE, BEYOND + 4);
}

/* Signatures and addresses that a process made up. */
static void test_garbage(void **state)
{
	struct made made = two_frames();

	(void)state;
	made.stack[1] = ~0ULL;
	unwind(&made, LEAF + 4, STACK, ~0ULL, SIGNED(FRAMED + 8));
	EXPECT(VP_CHAIN_BAD_TABLE, LEAF + 4, FRAMED + 8);
	made.stack[1] = SIGNED(0ULL);
	unwind(&made, LEAF + 4, STACK, ~0ULL, SIGNED(FRAMED + 8));
	EXPECT(VP_CHAIN_WHOLE, LEAF + 4, FRAMED + 8);
	unwind(&made, PLAIN + 4, STACK, ~0ULL, ~0ULL);
	EXPECT(VP_CHAIN_NO_TABLE, PLAIN + 4);
	unwind(&made, FRAMED + 4, ~0ULL - 8, 0, 0); /* the CFA overflows */
	EXPECT(VP_CHAIN_BAD_TABLE, FRAMED + 4);
}

/* Frame records where code has no tables, and tables after them. */
static void test_records(void **state)
{
	struct made made = two_frames();

	(void)state;
	/* The stack pointer of the second function follows from its record. */
	made.stack[0] = SIGNED(STACK + 32);
	made.stack[4] = SIGNED(STACK + 0x100);
	unwind(&made, PLAIN + 4, STACK - 64, STACK, SIGNED(PLAIN + 0x80));
	EXPECT(VP_CHAIN_WHOLE, PLAIN + 4, PLAIN + 0x80, FRAMED + 0x20, OUTER + 0x10);
	assert_true(found.has_link);
	assert_int_equal(found.by_table, 1);
	/* x30 has the caller still, or no code. */
	unwind(&made, PLAIN + 4, STACK - 64, STACK, FRAMED + 0x20);
	EXPECT(VP_CHAIN_WHOLE, PLAIN + 4, FRAMED + 0x20, OUTER + 0x10);
	assert_false(found.has_link);
	unwind(&made, PLAIN + 4, STACK - 64, STACK, STACK);
	assert_int_equal(found.count, 3);
	/* Generated code uses it as it likes. */
	made.generated = true;
	unwind(&made, PLAIN + 4, STACK - 64, STACK, PLAIN + 0x80);
	EXPECT(VP_CHAIN_WHOLE, PLAIN + 4, FRAMED + 0x20, OUTER + 0x10);
}

static void test_plt(void **state)
{
	struct made made = two_frames();

	(void)state;
	/* bti c; adrp x16; ldr x17, [x16, #n]; add x16, x16, #n; br x17 */
	memcpy(made.plt, (uint32_t[]){0xd503245f, 0xb0000090, 0xf947fa11, 0x913fc210, 0xd61f0220},
	       sizeof(made.plt));
	for (uint64_t ip = PLT; ip < PLT + sizeof(made.plt); ip += 4) {
		unwind(&made, ip, STACK, 0, SIGNED(FRAMED + 8));
		EXPECT(VP_CHAIN_WHOLE, ip, FRAMED + 8, FRAMED + 0x20, OUTER + 0x10);
	}
	/* Without the addition. */
	made.plt[3] = made.plt[4];
	unwind(&made, PLT + 12, STACK, 0, SIGNED(FRAMED + 8));
	EXPECT(VP_CHAIN_WHOLE, PLT + 12, FRAMED + 8, FRAMED + 0x20, OUTER + 0x10);
	/* A jump of other code. */
	made.plt[2] = 0xaa0203f1; /* mov x17, x2 */
	unwind(&made, PLT + 12, STACK, 0, FRAMED + 8);
	EXPECT(VP_CHAIN_NO_TABLE, PLT + 12);
	made.plt[2] = 0xf947fa11;
	made.plt[3] = 0xd61f0200; /* br x16 */
	unwind(&made, PLT, STACK, 0, FRAMED + 8);
	EXPECT(VP_CHAIN_NO_TABLE, PLT);
}

/* The frame of a signal has the registers of the code that was interrupted: a function that has
 * not used the stack. */
static void test_signal(void **state)
{
	struct made made = {.signal = {0xd2801168, 0xd4000001}};
	uint64_t *saved = made.stack + 4 + SIGNAL_REGISTERS / 8, *outer = made.stack + 128;

	(void)state;
	made.stack[1] = SIGNED(SIGNAL); /* of the handler */
	saved[VP_DWARF_X30] = SIGNED(FRAMED + 8);
	saved[VP_DWARF_ARM_SP] = STACK + 128 * 8;
	saved[VP_DWARF_ARM_PC] = LEAF + 4;
	outer[1] = SIGNED(OUTER + 0x10);
	unwind(&made, FRAMED + 0x20, STACK, 0, 0);
	/* An interrupted address is marked by its second byte. */
	EXPECT(VP_CHAIN_WHOLE, FRAMED + 0x20, SIGNAL, LEAF + 5, FRAMED + 8, OUTER + 0x10);
	made.signal[1] = 0xd4000021; /* svc #1 */
	unwind(&made, FRAMED + 0x20, STACK, 0, 0);
	EXPECT(VP_CHAIN_WHOLE, FRAMED + 0x20, SIGNAL);
}

/* Instructions of Arm's tables: the return address is signed from here on. */
static void test_signed_rows(void **state)
{
	static const char cie[] = "\x14\0\0\0\0\0\0\0\1zR\0\4\x78\x1e\1\x1b\x0c\x1f\0\0\0\0\0";
	/* after 4 bytes: signed; after 4 more: the CFA is SP + 32, x29 at CFA - 32, x30 at CFA - 24
	 */
	static const char own[] = "\x41\x2d\x41\x0e\x20\x9d\4\x9e\3";
	enum { BASE = 0x9000, HEADER = 0x8000, START = 0x1000, AT = sizeof(cie) - 1 };
	const uint32_t words[] = {sizeof(own) + 12, AT + 4, START - (uint32_t)(BASE + AT + 8),
				  0x100};
	int32_t header[] = {0, 0, 1, START - HEADER, BASE + AT - HEADER};
	struct vp_cfi_row row;
	char frame[128] = {0};
	uint32_t work = 100;

	(void)state;
	memcpy(frame, cie, AT);
	memcpy(frame + AT, words, sizeof(words));
	memcpy(frame + AT + sizeof(words) + 1, own, sizeof(own) - 1);
	memcpy(header, "\1\x1b\3\x3b", 4);
	const struct vp_eh_frame tables = {.header = {(char *)header, sizeof(header), HEADER},
					   .frame = {frame, sizeof(frame), BASE},
					   .is_64_bit = true};
	assert_int_equal(vp_cfi_find(&tables, START + 4, &work, &row), VP_CFI_FOUND);
	assert_int_equal(row.cfa.value, 0);
	assert_int_equal(row.of[VP_DWARF_X30].kind, VP_CFI_SAME);
	assert_int_equal(vp_cfi_find(&tables, START + 8, &work, &row), VP_CFI_FOUND);
	assert_int_equal(row.cfa.value, 32);
	assert_int_equal(row.cfa_register, VP_DWARF_ARM_SP);
	assert_int_equal(row.return_register, VP_DWARF_X30);
	assert_int_equal(row.of[VP_DWARF_X29].value, -32);
	assert_int_equal(row.of[VP_DWARF_X30].value, -24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_link_register), cmocka_unit_test(test_return_address_in_register),
	    cmocka_unit_test(test_garbage),       cmocka_unit_test(test_records),
	    cmocka_unit_test(test_plt),           cmocka_unit_test(test_signal),
	    cmocka_unit_test(test_signed_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
