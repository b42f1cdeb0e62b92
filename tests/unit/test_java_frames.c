/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Java frames in call chains: states of compiled frames, inlined methods, and forged ones. */
#include "unit.h"

#include "guestreader/java_frames.h"
#include "java_memory.h"
#include "runtime/java_frame_layout.h"

enum {
	AT_STACK = 0x2900, /* in the memory */
	AT_DEEP = 0x9000,  /* the same, up to its end */
	METHOD_BLOCK = 2,  /* of java_blocks */
};
#define STACK (JAVA_BASE + AT_STACK)
/* Not in the code heap, and executable. */
#define NATIVE 0x1000ULL

static struct java_memory java;
static struct vp_java_vm vm;

static void open_vm(enum java_version version)
{
	java_memory_make(&java, version);
	vm = (struct vp_java_vm){.memory = &java.memory};
	expect_no_error(vp_java_tables_read(&java.memory, java.symbols, &vm.tables));
	expect_no_error(vp_java_heaps_read(&vm));
}

static uint64_t code_of(unsigned block)
{
	return java_blob(&java, block) + JAVA_CODE_OFFSET;
}

static void put_code(uint64_t offset, const char *bytes, size_t size)
{
	memcpy(java.bytes + (code_of(METHOD_BLOCK) - JAVA_BASE) + offset, bytes, size);
}

static void expect_layout(void)
{
	struct vp_java_frame frame;

	assert_true(vp_java_frame_find(&vm, code_of(METHOD_BLOCK), &frame));
	assert_int_equal(frame.kind, VP_JAVA_METHOD);
	assert_int_equal(frame.begin, code_of(METHOD_BLOCK));
	assert_int_equal(frame.size, 8 * JAVA_FRAME_WORDS);
	assert_int_equal(frame.complete, JAVA_FRAME_COMPLETE);
	/* Before the code. */
	assert_false(vp_java_frame_find(&vm, code_of(METHOD_BLOCK) - 1, &frame));
}

static void expect_inlined(uint64_t offset, unsigned count)
{
	struct vp_java_frame frame;

	assert_true(vp_java_frame_find(&vm, code_of(METHOD_BLOCK) + offset, &frame));
	assert_int_equal(frame.scope.n_inlined, count);
	if (count)
		assert_int_equal(frame.scope.inlined[0], java_method(1));
}

static void test_layout(void **state)
{
	(void)state;
	for (enum java_version version = JAVA_8; version <= JAVA_25; version++) {
		open_vm(version);
		expect_layout();
		expect_inlined(0, 0);
		expect_inlined(0xf, 0);
		expect_inlined(0x10, 1);
		expect_inlined(0x1f, 1);
		expect_inlined(0x20, 0);
	}
	size_t words = java_blob(&java, METHOD_BLOCK) - JAVA_BASE + 0x38;
	struct vp_java_frame frame;
	java_put(&java, words, 1, 4); /* no room for RBP */
	assert_true(vp_java_frame_find(&vm, code_of(METHOD_BLOCK), &frame));
	assert_int_equal(frame.size, 0);
	java_put(&java, words, 1 << 20, 4); /* 8 MiB */
	assert_true(vp_java_frame_find(&vm, code_of(METHOD_BLOCK), &frame));
	assert_int_equal(frame.size, 0);
	open_vm(JAVA_8);
	vm.tables.at.nmethod_scopes = VP_JAVA_NONE; /* no debug information */
	expect_layout();
	expect_inlined(0x10, 0);
}

static void test_forged_debug(void **state)
{
	size_t data = JAVA_AT_DEBUG + 0x40;

	(void)state;
	open_vm(JAVA_25);
	java_put(&java, data + 3, 4, 1); /* its own caller */
	expect_inlined(0x10, 0);
	java_put(&java, data + 3, 0xff, 1); /* beyond the data */
	expect_inlined(0x10, 0);
	java_put(&java, data + 3, 0, 1); /* no number */
	expect_inlined(0x10, 0);
	java_put(&java, data + 3, 2, 1);
	expect_inlined(0x10, 1);
	java_put(&java, data + 4, 5, 1); /* beyond the metadata */
	java_put(&java, JAVA_AT_METADATA + 0x20, java_method(1), 8);
	expect_inlined(0x10, 0);
	java_put(&java, data + 4, 3, 1);
	java_put(&java, JAVA_AT_METADATA + 16, java_method(1) + 1, 8); /* not aligned */
	expect_inlined(0x10, 0);
	java_put(&java, JAVA_AT_METADATA + 16, java_method(1), 8);
	java_put(&java, JAVA_AT_METADATA + 8, java_method(1), 8); /* not the compiled method */
	expect_inlined(0x10, 0);
}

static void expect_state(uint64_t offset, enum vp_java_frame_state expected)
{
	struct vp_java_frame frame;
	uint64_t addr = code_of(METHOD_BLOCK) + offset;

	assert_true(vp_java_frame_find(&vm, addr, &frame));
	assert_int_equal(vp_java_frame_state(&java.memory, &frame, addr), expected);
}

static void test_states(void **state)
{
	(void)state;
	open_vm(JAVA_25);
	/* push %rbp; sub $32, %rsp; … */
	put_code(0, "\x90\x90\x90\x90\x55\x48\x83\xec\x20", 9);
	expect_state(0, VP_JAVA_FRAME_NOT_BUILT);
	expect_state(4, VP_JAVA_FRAME_NOT_BUILT);
	expect_state(5, VP_JAVA_FRAME_POINTER_ON_TOP);
	expect_state(9, VP_JAVA_FRAME_COMPLETE);
	/* … add $32, %rsp; pop %rbp; cmp 0x28(%r15), %rsp; ja; ret */
	put_code(0x40, "\x48\x83\xc4\x20\x5d\x49\x3b\x67\x28\x0f\x87\1\2\3\4\xc3", 16);
	expect_state(0x40, VP_JAVA_FRAME_COMPLETE);
	expect_state(0x44, VP_JAVA_FRAME_POINTER_ON_TOP);
	expect_state(0x45, VP_JAVA_FRAME_NOT_BUILT);
	expect_state(0x49, VP_JAVA_FRAME_NOT_BUILT);
	expect_state(0x4f, VP_JAVA_FRAME_NOT_BUILT);
	expect_state(0x50, VP_JAVA_FRAME_COMPLETE);
	/* pop %rbp; test %eax, n(%rip); ret */
	put_code(0x60, "\x5d\x85\x05\1\2\3\4\xc3", 8);
	expect_state(0x60, VP_JAVA_FRAME_POINTER_ON_TOP);
	expect_state(0x61, VP_JAVA_FRAME_NOT_BUILT);
	/* sub $n, %rsp without a push, in a prologue */
	put_code(0, "\x48\x83\xec\x20\x48\x89\x6c\x24\x10", 9);
	expect_state(4, VP_JAVA_FRAME_WITHOUT_POINTER);
	expect_state(9, VP_JAVA_FRAME_COMPLETE);
}

static void expect_state_arm(uint64_t offset, enum vp_java_frame_state expected)
{
	struct vp_java_frame frame;
	uint64_t addr = code_of(METHOD_BLOCK) + offset;

	assert_true(vp_java_frame_find(&vm, addr, &frame));
	assert_int_equal(vp_java_frame_state_arm(&java.memory, &frame, addr), expected);
}

#define PUT_ARM(offset, ...)                                                                       \
	put_code(offset, (const char *)(const uint32_t[]){__VA_ARGS__},                            \
		 sizeof((const uint32_t[]){__VA_ARGS__}))

static void open_arm_vm(void)
{
	open_vm(JAVA_25);
	java_put(&java, java_blob(&java, METHOD_BLOCK) - JAVA_BASE + 0x3c, 0x10, 2);
}

static void test_states_arm(void **state)
{
	(void)state;
	open_arm_vm();
	/* nop; sub sp, sp, #48; stp x29, x30, [sp, #32]; … */
	PUT_ARM(0, 0xd503201f, 0xd100c3ff, 0xa9027bfd);
	expect_state_arm(0, VP_JAVA_FRAME_NOT_BUILT);
	expect_state_arm(4, VP_JAVA_FRAME_NOT_BUILT);
	expect_state_arm(8, VP_JAVA_FRAME_WITHOUT_POINTER);
	expect_state_arm(12, VP_JAVA_FRAME_COMPLETE);
	/* … ldp x29, x30, [sp, #32]; add sp, sp, #48; ldr x8, [x28, #n]; cmp sp, x8; b.hi; ret */
	PUT_ARM(0x40, 0xa9427bfd, 0x9100c3ff, 0xf9404388, 0xeb2863ff, 0x54000108, 0xd65f03c0);
	expect_state_arm(0x40, VP_JAVA_FRAME_COMPLETE);
	expect_state_arm(0x44, VP_JAVA_FRAME_WITHOUT_POINTER);
	expect_state_arm(0x48, VP_JAVA_FRAME_NOT_BUILT);
	expect_state_arm(0x54, VP_JAVA_FRAME_NOT_BUILT);
	expect_state_arm(0x58, VP_JAVA_FRAME_COMPLETE);
	/* stp x29, x30, [sp, #-16]!; sub sp, sp, #32; … */
	PUT_ARM(4, 0xa9bf7bfd, 0xd10083ff);
	expect_state_arm(4, VP_JAVA_FRAME_NOT_BUILT);
	expect_state_arm(8, VP_JAVA_FRAME_POINTER_ON_TOP);
	expect_state_arm(12, VP_JAVA_FRAME_COMPLETE);
	/* … add sp, sp, #32; ldp x29, x30, [sp], #16; ret */
	PUT_ARM(0x60, 0x910083ff, 0xa8c17bfd, 0xd65f03c0);
	expect_state_arm(0x60, VP_JAVA_FRAME_COMPLETE);
	expect_state_arm(0x64, VP_JAVA_FRAME_POINTER_ON_TOP);
	expect_state_arm(0x68, VP_JAVA_FRAME_NOT_BUILT);
	/* At the end of the method's memory. */
	struct vp_java_frame frame;
	assert_true(vp_java_frame_find(&vm, code_of(METHOD_BLOCK), &frame));
	for (uint64_t at = frame.end - 8; at < frame.end; at++)
		assert_int_equal(vp_java_frame_state_arm(&java.memory, &frame, at),
				 VP_JAVA_FRAME_COMPLETE);
}

static bool is_code(void *context, uint64_t addr)
{
	(void)context;
	return addr - NATIVE < 0x100 || addr - (JAVA_BASE + JAVA_AT_CODE) < JAVA_CODE_SIZE;
}

static enum vp_cfi_result find_nothing(void *context, uint64_t addr, struct vp_cfi_row *row,
				       struct vp_slice *expressions)
{
	(void)context, (void)addr, (void)row, (void)expressions;
	return VP_CFI_NONE;
}

static bool is_generated(void *context, uint64_t addr)
{
	(void)context;
	return addr > NATIVE + 0x100;
}

static struct vp_java_stack stack;

static enum vp_user_step take_step(void *context, struct vp_user_registers *now, bool exact)
{
	(void)context;
	return vp_java_frames_step(&stack, now, exact);
}

/* Unwinds the stack from these registers. */
static void make_chain_of(const struct vp_user_arch *arch, const struct vp_user_registers *from,
			  struct vp_user_chain *chain, struct vp_java_found *found)
{
	const struct vp_user_program program = {.arch = arch,
						.read = java_memory_read,
						.find = find_nothing,
						.step = take_step,
						.is_code = is_code,
						.is_generated = is_generated,
						.context = &java};

	stack = (struct vp_java_stack){
	    .frames = vp_java_frames_new(), .program = &program, .vm = vm, .tgid = 7, .time = 1};
	vp_user_chain_make(&program, from, chain);
	vp_java_frames_put(&stack, chain, found);
	vp_java_frames_free(stack.frames);
}

static void make_chain(uint64_t rip, uint64_t rsp, uint64_t rbp, struct vp_user_chain *chain,
		       struct vp_java_found *found)
{
	const struct vp_user_arch arch = vp_user_arch_x86();
	const struct vp_user_registers from = {
	    .known = (1U << VP_DWARF_X86_REGISTERS) - 1,
	    .value = {[VP_DWARF_RIP] = rip, [VP_DWARF_RSP] = rsp, [VP_DWARF_RBP] = rbp}};

	make_chain_of(&arch, &from, chain, found);
}

static void put_word(unsigned index, uint64_t value)
{
	java_put(&java, AT_STACK + 8UL * index, value, 8);
}

/* A compiled method with an inlined one is called by an interpreted one, and that by native code. A
 * compiled method calls it. */
static void put_stack(void)
{
	const unsigned frame = JAVA_FRAME_WORDS;

	memset(java.bytes + AT_STACK, 0, 0x200);
	put_word(frame - 2, 0x77);
	put_word(frame - 1, code_of(METHOD_BLOCK) + 0x18);
	put_word(2 * frame - 2, STACK + 8 * 16UL); /* RBP and return address: the interpreter's */
	put_word(2 * frame - 1, code_of(0) + 0x20);
	put_word(16 - 3, java_method(0));
	put_word(16 - 1, STACK + 8 * 20UL); /* the caller's stack pointer, above locals */
	put_word(16, STACK + 8 * 24UL);
	put_word(17, NATIVE + 8);
	put_word(24, 0); /* the last frame pointer */
	put_word(25, 0);
}

static void test_chain(void **state)
{
	const uint64_t at = code_of(METHOD_BLOCK) + 0x18;
	struct vp_java_found found;
	struct vp_user_chain chain;

	(void)state;
	open_vm(JAVA_25);
	put_stack();
	make_chain(at, STACK, 0x77, &chain, &found);
	/* The innermost address has the name of the inlined method; its caller is the compiled one.
	 */
	const uint64_t inlined = java_method(1), compiled = java_method(0);
	const uint64_t expected[] = {at,           compiled + 1, inlined + 1,
				     compiled + 1, compiled + 1, NATIVE + 8};
	const uint64_t methods[] = {compiled, inlined, compiled, compiled};
	assert_int_equal(chain.count, 6);
	assert_memory_equal(chain.ips, expected, sizeof(expected));
	assert_int_equal(chain.end, VP_CHAIN_WHOLE);
	assert_int_equal(found.n_code, 1);
	assert_int_equal(found.code[0], at);
	assert_int_equal(found.n_methods, 4);
	assert_memory_equal(found.methods, methods, sizeof(methods));
}

/* As pointer authentication leaves it. */
#define SIGNED(address) ((address) | 0x5a3f000000000000ULL)

static struct vp_user_chain arm_chain;

static void make_chain_arm(uint64_t ip, uint64_t sp, uint64_t fp, uint64_t link)
{
	const struct vp_user_arch arch = vp_user_arch_arm(48);
	struct vp_java_found found;
	const struct vp_user_registers from = {.known = (1ULL << VP_DWARF_ARM_REGISTERS) - 1,
					       .value = {[VP_DWARF_ARM_PC] = ip,
							 [VP_DWARF_ARM_SP] = sp,
							 [VP_DWARF_X29] = fp,
							 [VP_DWARF_X30] = link}};

	make_chain_of(&arch, &from, &arm_chain, &found);
}

static void expect_arm(enum vp_chain_end end, const uint64_t *ips, uint32_t count)
{
	assert_int_equal(arm_chain.end, end);
	assert_int_equal(arm_chain.count, count);
	assert_memory_equal(arm_chain.ips, ips, count * sizeof(*ips));
}

/* The frames of put_stack() on 64-bit Arm, with signed addresses. */
static void test_chain_arm(void **state)
{
	const uint64_t code = code_of(METHOD_BLOCK), at = code + 0x18;
	const uint64_t inlined = java_method(1), compiled = java_method(0);
	const uint64_t ips[] = {at,           compiled + 1, inlined + 1,
				compiled + 1, compiled + 1, NATIVE + 8};

	(void)state;
	open_arm_vm();
	put_stack();
	put_word(JAVA_FRAME_WORDS - 1, SIGNED(at));
	put_word(17, SIGNED(NATIVE + 8));
	make_chain_arm(at, STACK, 0x77, 0);
	expect_arm(VP_CHAIN_WHOLE, ips, 6);
	/* An interpreted caller, whose expression stack the interpreted callee uses. */
	put_word(16 - 1, STACK + 8 * 10UL);
	make_chain_arm(at, STACK, 0x77, 0);
	expect_arm(VP_CHAIN_WHOLE, ips, 6);
	/* Before the frame is built, and without x29 and x30 in it: the caller is in x30. */
	PUT_ARM(0, 0xd503201f, 0xd100c3ff, 0xa9027bfd);
	const uint64_t before[] = {code + 4, inlined + 1, compiled + 1, compiled + 1, NATIVE + 8};
	make_chain_arm(code + 4, STACK + 8UL * JAVA_FRAME_WORDS, 0x77, SIGNED(at));
	expect_arm(VP_CHAIN_WHOLE, before, 5);
	const uint64_t between[] = {code + 8, inlined + 1, compiled + 1, compiled + 1, NATIVE + 8};
	make_chain_arm(code + 8, STACK, 0x77, SIGNED(at));
	expect_arm(VP_CHAIN_WHOLE, between, 5);
	/* x30 is no code: forged. */
	make_chain_arm(code + 4, STACK, 0x77, 0x5555);
	expect_arm(VP_CHAIN_NO_TABLE, (const uint64_t[]){code + 4}, 1);
}

/* Stubs have no frame, and the caller in x30; or a frame record. */
static void test_stubs_arm(void **state)
{
	const uint64_t stub = code_of(1) + 0x10, at = code_of(METHOD_BLOCK) + 0x18;
	const uint64_t ips[] = {stub, java_method(1) + 1, java_method(0) + 1, java_method(0) + 1,
				NATIVE + 8};

	(void)state;
	open_arm_vm();
	java_put(&java, java_blob(&java, 1) - JAVA_BASE + 0x38, 0, 4);
	put_stack();
	make_chain_arm(stub, STACK + 8UL * JAVA_FRAME_WORDS, 0x77, at);
	expect_arm(VP_CHAIN_WHOLE, ips, 5);
	/* The record is at words 24 and 25. */
	put_word(25, NATIVE + 0x10);
	put_word(24, STACK + 8 * 30UL);
	const uint64_t by_record[] = {stub, NATIVE + 0x10};
	make_chain_arm(stub, STACK, STACK + 8 * 24UL, SIGNED(NATIVE + 0x10));
	expect_arm(VP_CHAIN_WHOLE, by_record, 2);
	make_chain_arm(stub, STACK, STACK + 8 * 24UL, stub + 8);
	expect_arm(VP_CHAIN_WHOLE, by_record, 2);
}

static void expect_end(uint64_t rip, uint64_t rbp, uint32_t count)
{
	struct vp_java_found found;
	struct vp_user_chain chain;

	make_chain(rip, STACK, rbp, &chain, &found);
	assert_int_equal(chain.count, count);
	assert_int_equal(chain.end, VP_CHAIN_NO_TABLE);
}

static void test_forged_frames(void **state)
{
	(void)state;
	open_vm(JAVA_25);
	put_stack();
	put_word(16 - 1, STACK + 8 * 17UL); /* inside the frame */
	expect_end(code_of(0) + 0x20, STACK + 8 * 16UL, 1);
	put_word(16 - 1, STACK + 8 * 20UL + 1); /* not aligned */
	expect_end(code_of(0) + 0x20, STACK + 8 * 16UL, 1);
	put_word(16 - 1, STACK + 8 * 20UL);
	put_word(17, 0x5555); /* not code */
	expect_end(code_of(0) + 0x20, STACK + 8 * 16UL, 1);
	/* Below the stack pointer. */
	expect_end(code_of(0) + 0x20, STACK - 16, 1);
}

/* Code beyond the heap that was known before. */
static void test_grown_heap(void **state)
{
	const struct vp_user_arch arch = vp_user_arch_x86();
	const struct vp_user_program program = {.arch = &arch,
						.read = java_memory_read,
						.find = find_nothing,
						.is_code = is_code,
						.is_generated = is_generated,
						.context = &java};
	struct vp_user_registers now = {.known = (1U << VP_DWARF_X86_REGISTERS) - 1};

	(void)state;
	open_vm(JAVA_25);
	put_stack();
	now.value[VP_DWARF_RIP] = code_of(METHOD_BLOCK) + 0x18;
	now.value[VP_DWARF_RSP] = STACK;
	stack = (struct vp_java_stack){
	    .frames = vp_java_frames_new(), .program = &program, .vm = vm, .tgid = 7, .time = 1};
	stack.vm.heaps[0].high = stack.vm.heaps[0].low + JAVA_SEGMENT;
	assert_int_equal(vp_java_frames_step(&stack, &now, true), VP_USER_STEP_DONE);
	assert_int_equal(stack.vm.heaps[0].high, vm.heaps[0].high);
	vp_java_frames_free(stack.frames);
}

/* A stack of compiled frames without an end, each with an inlined method. */
static void test_deep(void **state)
{
	struct vp_java_found found;
	struct vp_user_chain chain;

	(void)state;
	open_vm(JAVA_25);
	for (unsigned at = AT_DEEP; at < JAVA_SIZE; at += 8)
		java_put(&java, at, code_of(METHOD_BLOCK) + 0x18, 8);
	make_chain(code_of(METHOD_BLOCK) + 0x18, JAVA_BASE + AT_DEEP, 0, &chain, &found);
	assert_int_equal(chain.count, VP_CHAIN_LONGEST);
	assert_int_equal(chain.end, VP_CHAIN_TOO_DEEP);
	assert_int_equal(found.n_methods, VP_CHAIN_LONGEST - 1);
	assert_int_equal(found.n_code, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_layout),     cmocka_unit_test(test_forged_debug),
	    cmocka_unit_test(test_states),     cmocka_unit_test(test_chain),
	    cmocka_unit_test(test_states_arm), cmocka_unit_test(test_chain_arm),
	    cmocka_unit_test(test_stubs_arm),  cmocka_unit_test(test_forged_frames),
	    cmocka_unit_test(test_deep),       cmocka_unit_test(test_grown_heap)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
