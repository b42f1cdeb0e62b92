/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of generated code that are being built or freed, on 64-bit Arm: MacroAssembler's
 * build_frame(), remove_frame(), enter() and leave() in HotSpot's macroAssembler_aarch64.cpp. */
#include "base/macros.h"
#include "runtime/java_frame_layout.h"
#include "runtime/process_memory.h"

enum { INSTRUCTION = 4, AROUND = 16 /* instructions */, RECORD = 16 /* x29 and x30 */ };

/* Instructions around an address; those outside of the block are 0. */
struct instructions {
	uint32_t at[2 * AROUND];
};

static void read_instructions(const struct vp_process_memory *memory,
			      const struct vp_java_frame *frame, uint64_t addr,
			      struct instructions *ret)
{
	uint64_t before = (addr - frame->begin) / INSTRUCTION;
	uint64_t after = (frame->end - addr) / INSTRUCTION;

	*ret = (struct instructions){{0}};
	before = before < AROUND ? before : AROUND;
	after = after < AROUND ? after : AROUND;
	if (!vp_process_read(memory, addr - before * INSTRUCTION, ret->at + AROUND - before,
			     (size_t)(before + after) * INSTRUCTION))
		*ret = (struct instructions){{0}};
}

static bool is_one_of(uint32_t instruction, const uint32_t (*kinds)[2], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((instruction & kinds[i][0]) == kinds[i][1])
			return true;
	return false;
}

/* sub sp, sp, #n; sub sp, sp, x8 */
static bool is_allocation(uint32_t instruction)
{
	static const uint32_t kinds[][2] = {{0xff8003ff, 0xd10003ff}, {~0U, 0xcb2863ff}};

	return is_one_of(instruction, kinds, VP_ARRAY_SIZE(kinds));
}

/* add sp, sp, #n; add sp, sp, x8; mov sp, x29 */
static bool is_release(uint32_t instruction)
{
	static const uint32_t kinds[][2] = {
	    {0xff8003ff, 0x910003ff}, {~0U, 0x8b2863ff}, {~0U, 0x910003bf}};

	return is_one_of(instruction, kinds, VP_ARRAY_SIZE(kinds));
}

/* stp x29, x30, [sp, #n] */
static bool is_save(uint32_t instruction)
{
	return (instruction & 0xffc07fff) == 0xa9007bfd;
}

/* ldp x29, x30, [sp, #n] */
static bool is_restore(uint32_t instruction)
{
	return (instruction & 0xffc07fff) == 0xa9407bfd;
}

/* stp x29, x30, [sp, #-16]! */
static bool is_push(uint32_t instruction)
{
	return instruction == 0xa9bf7bfd;
}

/* ldp x29, x30, [sp], #16 */
static bool is_pop(uint32_t instruction)
{
	return instruction == 0xa8c17bfd;
}

/* Between a frame's end and the return: ldr x8, [x28, #n]; cmp sp, x8; b.hi; ldr wzr, [x8]; nop;
 * autiasp; autiaz. */
static bool is_poll(uint32_t instruction)
{
	static const uint32_t kinds[][2] = {{0xffc003ff, 0xf9400388}, {~0U, 0xeb2863ff},
					    {0xff00001f, 0x54000008}, {~0U, 0xb940011f},
					    {~0U, 0xd503201f},        {~0U, 0xd50323bf},
					    {~0U, 0xd503239f}};

	return is_one_of(instruction, kinds, VP_ARRAY_SIZE(kinds));
}

static bool is_before_return(const struct instructions *instructions, unsigned at)
{
	while (at < 2 * AROUND && is_poll(instructions->at[at]))
		at++;
	return at < 2 * AROUND && instructions->at[at] == 0xd65f03c0; /* ret */
}

/* In a prologue: `sub sp, sp, #n; stp x29, x30, [sp, #n - 16]` or `stp x29, x30, [sp, #-16]!; sub
 * sp, sp, #n`. */
static enum vp_java_frame_state state_in_prologue(const struct instructions *instructions,
						  const struct vp_java_frame *frame)
{
	bool allocated = false;

	for (unsigned at = AROUND; at-- > 0;) {
		uint32_t instruction = instructions->at[at];
		if (is_save(instruction))
			return VP_JAVA_FRAME_COMPLETE;
		/* A frame of 16 bytes is complete. */
		if (is_push(instruction))
			return allocated || frame->size == RECORD ? VP_JAVA_FRAME_COMPLETE
								  : VP_JAVA_FRAME_POINTER_ON_TOP;
		allocated |= is_allocation(instruction);
	}
	return allocated ? VP_JAVA_FRAME_WITHOUT_POINTER : VP_JAVA_FRAME_NOT_BUILT;
}

enum vp_java_frame_state vp_java_frame_state_arm(const struct vp_process_memory *memory,
						 const struct vp_java_frame *frame, uint64_t addr)
{
	struct instructions instructions;
	const uint32_t *next = instructions.at + AROUND;

	read_instructions(memory, frame, addr, &instructions);
	if (is_before_return(&instructions, AROUND))
		return VP_JAVA_FRAME_NOT_BUILT;
	if (is_pop(*next) && is_before_return(&instructions, AROUND + 1))
		return VP_JAVA_FRAME_POINTER_ON_TOP;
	if (is_release(*next) && is_restore(next[-1]))
		return VP_JAVA_FRAME_WITHOUT_POINTER;
	return addr - frame->begin < frame->complete ? state_in_prologue(&instructions, frame)
						     : VP_JAVA_FRAME_COMPLETE;
}
