/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unwind tables and stacks that a guest made. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/quick_chain.h"
#include "unwind/user_chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MAX_WORK = 100000 };

struct input {
	struct vp_eh_frame tables;
	const uint8_t *stack;
	size_t stack_size;
	uint32_t work;
};

static bool read_stack(void *context, uint64_t address, void *to, size_t size)
{
	const struct input *input = context;

	if (address > input->stack_size || size > input->stack_size - address)
		return false;
	memcpy(to, input->stack + address, size);
	return true;
}

static struct vp_quick_rows rows;
static uint32_t version;

static enum vp_cfi_result find_row(void *context, uint64_t address, struct vp_cfi_row *row,
				   struct vp_slice *expressions)
{
	struct input *input = context;

	*expressions = (struct vp_slice){input->tables.frame.bytes, input->tables.frame.size};
	enum vp_cfi_result result = vp_cfi_find(&input->tables, address, &input->work, row);
	if (result == VP_CFI_FOUND)
		vp_quick_rows_put(&rows, version, address, row);
	return result;
}

static bool is_code(void *context, uint64_t address)
{
	return context && address;
}

static void expect_bounded(const struct vp_user_chain *chain, const struct vp_user_arch *arch)
{
	if (!chain->count || chain->count > VP_CHAIN_LONGEST || chain->by_table >= VP_CHAIN_LONGEST)
		abort();
	for (uint32_t i = 1; i < chain->count; i++)
		if ((chain->ips[i] & ~VP_CHAIN_GUESSED_IP) - 1 > arch->address ||
		    (chain->ips[i] & VP_CHAIN_GUESSED_IP && !chain->guessed))
			abort();
}

static void unwind(struct input input, const struct vp_user_arch *arch)
{
	struct vp_user_registers registers = {.known = (1ULL << arch->registers) - 1};
	const struct vp_user_program program = {.arch = arch,
						.read = read_stack,
						.find = find_row,
						.is_code = is_code,
						.has_table = is_code,
						.context = &input};
	struct vp_user_chain chain;

	memcpy(registers.value, input.stack,
	       input.stack_size < sizeof(registers.value) ? input.stack_size
							  : sizeof(registers.value));
	version += version == UINT32_MAX ? 2 : 1;
	vp_user_chain_make(&program, &registers, &chain);
	expect_bounded(&chain, arch);
	if (vp_user_chain_guess(&program, &registers, &chain)) {
		expect_bounded(&chain, arch);
		if (!chain.guessed || chain.end != VP_CHAIN_WHOLE)
			abort();
	}
	/* Then by the rows that were found, whose frames have these registers' numbers. */
	if (arch->link == VP_DWARF_NONE &&
	    vp_quick_chain_make(&rows, version, &program, &registers, &chain))
		expect_bounded(&chain, arch);
}

/* Sizes of the header, in fours, and of .eh_frame, in sixteens; then both, and a stack, which
 * begins with the registers. Unwound as a stack of each architecture. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct vp_user_arch x86 = vp_user_arch_x86(), arm = vp_user_arch_arm(48);

	if (size < 2)
		return 0;
	size_t header = bytes[0] * 4UL, frame = bytes[1] * 16UL;
	bytes += 2;
	size -= 2;
	header = header < size ? header : size;
	frame = frame < size - header ? frame : size - header;
	const struct input input = {.tables = {.header = {bytes, header, 0},
					       .frame = {bytes + header, frame, header},
					       .is_64_bit = true},
				    .stack = bytes + header + frame,
				    .stack_size = size - header - frame,
				    .work = MAX_WORK};
	unwind(input, &x86);
	unwind(input, &arm);
	return 0;
}
