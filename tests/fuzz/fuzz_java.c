/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Java's tables, code and methods in the memory of a process that lies. The first byte tells
 * whether the tables are read, too; else the layout is that of the unit tests, so that every input
 * reaches the code heap.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/java_memory.h"
#include "runtime/java_frame_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST_READS = 4 << 20 };

static bool fuzz_java_take_code(void *context, const struct vp_java_code *code)
{
	const struct vp_java_vm *vm = context;
	struct vp_buffer name = {0};
	struct vp_java_code again;

	if (code->start >= code->end || !code->name[0])
		abort();
	if (vp_java_code_find(vm, code->start, &again) && again.start > code->start)
		abort();
	if (code->kind == VP_JAVA_METHOD && vp_java_method_name(vm, code->method, &name))
		for (size_t i = 0; i < name.size; i++)
			if ((unsigned char)name.bytes[i] < ' ')
				abort();
	vp_buffer_deinit(&name);
	return true;
}

/* Layouts of frames, and inlined methods. */
static void find_frame(const struct vp_java_vm *vm, uint64_t addr)
{
	struct vp_java_frame frame;

	if (!vp_java_frame_find(vm, addr, &frame))
		return;
	if (addr < frame.begin || addr >= frame.end || frame.scope.n_inlined > VP_JAVA_INLINED)
		abort();
	if (vp_java_frame_state(vm->memory, &frame, addr) > VP_JAVA_FRAME_NOT_BUILT ||
	    vp_java_frame_state_arm(vm->memory, &frame, addr) > VP_JAVA_FRAME_NOT_BUILT)
		abort();
	for (unsigned i = 0; i < frame.scope.n_inlined; i++)
		if (!frame.scope.inlined[i] || frame.scope.inlined[i] % 8)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct java_memory java;
	struct vp_java_vm vm = {.memory = &java.memory};
	struct vp_java_code code;
	bool damaged;

	if (!size)
		return 0;
	java_memory_make(&java, bytes[0] >> 1 & 1 ? JAVA_25 : JAVA_13);
	if (vp_java_tables_read(&java.memory, java.symbols, &vm.tables))
		abort();
	/* The rest of the input replaces memory: pieces of place, size and bytes. */
	for (size_t at = 1; at + 3 < size;) {
		size_t place = (bytes[at] | (size_t)bytes[at + 1] << 8) % JAVA_SIZE;
		size_t piece = bytes[at + 2] % 64 + 1UL;
		at += 3;
		piece = piece < size - at ? piece : size - at;
		piece = piece < JAVA_SIZE - place ? piece : JAVA_SIZE - place;
		memcpy(java.bytes + place, bytes + at, piece);
		at += piece;
	}
	java.reads = 0;
	if (bytes[0] & 1) {
		struct vp_error *error =
		    vp_java_tables_read(&java.memory, java.symbols, &vm.tables);
		vp_error_free(error);
		if (error)
			return 0;
	}
	vp_error_free(vp_java_heaps_read(&vm));
	for (uint64_t at = 0; at < JAVA_CODE_SIZE; at += JAVA_SEGMENT / 2)
		if (vp_java_code_find(&vm, JAVA_BASE + JAVA_AT_CODE + at, &code))
			fuzz_java_take_code(&vm, &code);
	for (uint64_t at = 0; at < JAVA_CODE_SIZE; at += 0x13)
		find_frame(&vm, JAVA_BASE + JAVA_AT_CODE + at);
	vp_java_code_each(&vm, fuzz_java_take_code, &vm, &damaged);
	if (java.reads > MOST_READS)
		abort();
	return 0;
}
