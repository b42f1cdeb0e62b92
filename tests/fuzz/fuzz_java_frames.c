/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of a Java process that lies: its memory is that of the unit tests, and the input replaces
 * parts of it, registers included.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/java_memory.h"
#include "guestreader/java_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
	AT_REGISTERS = 0x2900, /* in the memory … */
	AT_STACK = 0x2a00,     /* … and what RSP is near */
	MAX_READS = 1 << 20,
};

static struct java_memory java;

static enum vp_cfi_result find_no_row(void *context, uint64_t address, struct vp_cfi_row *row,
				      struct vp_slice *expressions)
{
	(void)context;
	(void)address;
	(void)row;
	(void)expressions;
	return VP_CFI_NONE;
}

static bool is_executable(void *context, uint64_t address)
{
	(void)context;
	return address;
}

static bool is_in_process(void *context, uint64_t address)
{
	(void)context;
	return address - JAVA_BASE < JAVA_SIZE;
}

static struct vp_java_stack stack;

static enum vp_user_step step_java(void *context, struct vp_user_registers *now, bool exact)
{
	(void)context;
	return vp_java_frames_step(&stack, now, exact);
}

/* Pieces of place, size and bytes. */
static void replace_memory(const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + 3 < size;) {
		size_t place = (bytes[at] | (size_t)bytes[at + 1] << 8) % JAVA_SIZE;
		size_t piece = bytes[at + 2] % 64 + 1UL;
		at += 3;
		piece = piece < size - at ? piece : size - at;
		piece = piece < JAVA_SIZE - place ? piece : JAVA_SIZE - place;
		memcpy(java.bytes + place, bytes + at, piece);
		at += piece;
	}
}

/* Registers, relative to code and stack, so that few bits lead to both. */
static struct vp_user_registers registers_now(void)
{
	struct vp_user_registers ret = {.known = (1U << VP_DWARF_X86_REGISTERS) - 1};
	uint64_t words[3];

	memcpy(words, java.bytes + AT_REGISTERS, sizeof(words));
	ret.value[VP_DWARF_RIP] = JAVA_BASE + JAVA_AT_CODE + words[0];
	ret.value[VP_DWARF_RSP] = JAVA_BASE + AT_STACK + words[1];
	ret.value[VP_DWARF_RBP] = JAVA_BASE + AT_STACK + words[2];
	return ret;
}

static void put_stack_word(unsigned index, uint64_t value)
{
	java_put(&java, AT_STACK + 8UL * index, value, 8);
}

/* A compiled method with an inlined one, which a compiled method calls, and an interpreted one
 * calls that: the stack of the unit tests. */
static void put_known_stack(void)
{
	const uint64_t top = JAVA_BASE + AT_STACK, caller = 16;
	const uint64_t code = java_blob(&java, 2) + JAVA_CODE_OFFSET + 0x18;

	java_put(&java, AT_REGISTERS, code - (JAVA_BASE + JAVA_AT_CODE), 8);
	put_stack_word(JAVA_FRAME_WORDS - 1, code);
	put_stack_word(2 * JAVA_FRAME_WORDS - 2, top + 8 * caller);
	put_stack_word(2 * JAVA_FRAME_WORDS - 1, java_blob(&java, 0) + JAVA_CODE_OFFSET + 0x20);
	put_stack_word(caller - 3, java_method(0));
	put_stack_word(caller - 1, top + 8 * 20UL);
	put_stack_word(caller, top + 8 * 24UL);
	put_stack_word(caller + 1, 0x1008);
}

static void expect_sane(const struct vp_user_chain *chain, const struct vp_java_found *found)
{
	if (!chain->count || chain->count > VP_CHAIN_LONGEST)
		abort();
	if (found->n_methods > VP_CHAIN_LONGEST || found->n_code > VP_CHAIN_LONGEST)
		abort();
	for (unsigned i = 0; i < found->n_methods; i++)
		if (!found->methods[i] || found->methods[i] % 8)
			abort();
}

static void unwind_once(const struct vp_user_program *program)
{
	const struct vp_user_registers from = registers_now();
	struct vp_java_found found;
	struct vp_user_chain chain;

	vp_user_chain_make(program, &from, &chain);
	vp_java_frames_put(&stack, &chain, &found);
	expect_sane(&chain, &found);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct vp_user_arch arch = vp_user_arch_x86();
	const struct vp_user_program program = {.arch = &arch,
						.read = java_memory_read,
						.find = find_no_row,
						.step = step_java,
						.is_code = is_executable,
						.is_generated = is_in_process,
						.context = &java};

	if (!size)
		return 0;
	java_memory_make(&java, bytes[0] % 3);
	stack = (struct vp_java_stack){
	    .frames = vp_java_frames_new(), .program = &program, .tgid = 7, .time = 1};
	stack.vm.memory = &java.memory;
	if (vp_java_tables_read(&java.memory, java.symbols, &stack.vm.tables) ||
	    vp_java_heaps_read(&stack.vm))
		abort();
	stack.vm.memory = NULL;
	put_known_stack();
	java.reads = 0;
	replace_memory(bytes + 1, size - 1);
	unwind_once(&program);
	/* Again, by cached layouts, and later, without. */
	unwind_once(&program);
	stack.time += 1000000000;
	stack.reread = false;
	unwind_once(&program);
	if (java.reads > MAX_READS)
		abort();
	vp_java_frames_free(stack.frames);
	return 0;
}
