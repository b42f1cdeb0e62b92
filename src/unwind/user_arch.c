/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/user_arch.h"

#include <string.h>

/* User space ends there with 5 levels of x86's page tables. */
#define X86_USER_BITS 56
#define LOW_BITS(count) ((1ULL << (count)) - 1)

/* struct sigcontext_64 of arch/x86/include/uapi/asm/sigcontext.h. */
static const uint8_t x86_signal_order[] = {8,
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
_Static_assert(sizeof(x86_signal_order) == VP_DWARF_X86_REGISTERS, "all registers");

/* `mov $15, %eax; syscall`. If libc has no unwind table for it, the code is recognized, as in
 * debuggers. */
static bool x86_is_signal_return(vp_user_read read_code, void *context, uint64_t ip)
{
	static const uint8_t long_form[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t short_form[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t code[sizeof(long_form)];

	if (read_code(context, ip, code, sizeof(long_form)))
		return !memcmp(code, long_form, sizeof(long_form)) ||
		       !memcmp(code, short_form, sizeof(short_form));
	/* At the end of the code only the short form fits. */
	return read_code(context, ip, code, sizeof(short_form)) &&
	       !memcmp(code, short_form, sizeof(short_form));
}

/* Code that is being recognized. */
struct code {
	vp_user_read read_code;
	void *context;
	uint64_t ip;
};

/* Whether the code continues with these bytes; advances past them. */
static bool take_code(struct code *code, const void *bytes, size_t size)
{
	char found[sizeof(uint64_t)];

	if (size > sizeof(found) || !code->read_code(code->context, code->ip, found, size) ||
	    memcmp(found, bytes, size))
		return false;
	code->ip += size;
	return true;
}

/* `endbr64; mov $n, %r11d; bnd jmp *n(%rip)`, of which only the jump is mandatory. Some linkers
 * write no unwind table for it. Advances to the distance of the jump's pointer. */
static bool x86_take_plt(struct code *code)
{
	take_code(code, "\xf3\x0f\x1e\xfa", 4);
	if (take_code(code, "\x41\xbb", 2))
		code->ip += 4;
	take_code(code, "\xf2", 1);
	return take_code(code, "\xff\x25", 2);
}

static bool x86_is_plt(vp_user_read read_code, void *context, uint64_t ip)
{
	struct code code = {read_code, context, ip};

	return x86_take_plt(&code);
}

/* Bytes of an indirect call (FF /2) with this ModRM and SIB byte, without prefixes; 0: none. */
static unsigned x86_call_length(uint8_t modrm, uint8_t sib)
{
	const unsigned mode = modrm >> 6, memory = modrm & 7;
	const bool has_sib = mode != 3 && memory == 4;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	switch (mode) {
	case 0:
		return 2 + has_sib + (memory == 5 || (has_sib && (sib & 7) == 5) ? 4 : 0);
	case 1:
		return 3 + has_sib;
	case 2:
		return 6 + has_sib;
	default:
		return 2;
	}
}

/* Adds to `from` the 32-bit distance at `at`. */
static bool x86_add_distance(vp_user_read read_code, void *context, uint64_t at, uint64_t from,
			     uint64_t *ret)
{
	int32_t distance;

	if (!read_code(context, at, &distance, sizeof(distance)))
		return false;
	*ret = from + (uint64_t)(int64_t)distance;
	return true;
}

/* The address in the word whose distance from `from` is at `at`. */
static bool x86_read_pointer(vp_user_read read_code, void *context, uint64_t at, uint64_t from,
			     uint64_t *ret)
{
	uint64_t pointer;

	return x86_add_distance(read_code, context, at, from, &pointer) &&
	       read_code(context, pointer, ret, sizeof(*ret));
}

/* The function that an address leads to, through a PLT entry if it is one. False: unreadable. */
static bool x86_skip_plt(vp_user_read read_code, void *context, uint64_t *ip)
{
	struct code code = {read_code, context, *ip};

	return !x86_take_plt(&code) ||
	       x86_read_pointer(read_code, context, code.ip, code.ip + sizeof(int32_t), ip);
}

static enum vp_user_call x86_call_before(vp_user_read read_code, void *context, uint64_t ip,
					 uint64_t *target)
{
	enum { LONGEST = 7, NEAR = 5, DISTANCE = 4 };
	uint8_t code[LONGEST + 1] = {0};
	bool is_known = false;

	if (ip < LONGEST || !read_code(context, ip - LONGEST, code, LONGEST))
		return VP_USER_CALL_NONE;
	for (unsigned length = 2; length <= LONGEST; length++) {
		const uint8_t *at = code + LONGEST - length;
		if (length == NEAR && at[0] == 0xe8)
			is_known = x86_add_distance(read_code, context, ip - DISTANCE, ip, target);
		else if (at[0] != 0xff || x86_call_length(at[1], at[2]) != length)
			continue;
		else if (at[1] == 0x15)
			is_known = x86_read_pointer(read_code, context, ip - DISTANCE, ip, target);
		is_known = is_known && x86_skip_plt(read_code, context, target);
		return is_known ? VP_USER_CALL_TARGET : VP_USER_CALL_SOMEWHERE;
	}
	return VP_USER_CALL_NONE;
}

struct vp_user_arch vp_user_arch_x86(void)
{
	/* struct ucontext is at RSP. */
	return (struct vp_user_arch){.registers = VP_DWARF_X86_REGISTERS,
				     .ip = VP_DWARF_RIP,
				     .sp = VP_DWARF_RSP,
				     .fp = VP_DWARF_RBP,
				     .link = VP_DWARF_NONE,
				     .signal_registers = 40,
				     .signal_order = x86_signal_order,
				     .address = ~0ULL,
				     .is_signal_return = x86_is_signal_return,
				     .is_plt = x86_is_plt,
				     .call_before = x86_call_before};
}

/* `mov x8, #139; svc #0`, of the vDSO: without an unwind table since v5.9 (87676cfca141 "arm64:
 * vdso: Disable dwarf unwinding through the sigreturn trampoline"). */
static bool arm_is_signal_return(vp_user_read read_code, void *context, uint64_t ip)
{
	struct code code = {read_code, context, ip};

	return take_code(&code, "\x68\x11\x80\xd2\x01\0\0\xd4", 8);
}

/* Whether the instruction at the address has these bits. */
static bool is_instruction(vp_user_read read_code, void *context, uint64_t ip, uint32_t mask,
			   uint32_t value)
{
	uint32_t instruction;

	return read_code(context, ip, &instruction, sizeof(instruction)) &&
	       (instruction & mask) == value;
}

/* `adrp x16, …; ldr x17, [x16, …]; add x16, x16, …; br x17`, maybe after `bti c`; short entries
 * have no addition. Linkers write no unwind table for it. A jump alone is not enough: V8's
 * interpreter ends each bytecode with one. */
static bool arm_is_plt(vp_user_read read_code, void *context, uint64_t ip)
{
	enum { BTI = 0xd503245f, ADRP = 0x90000010, SIZE = sizeof(uint32_t) };
	enum { LOAD = 0xf9400211, ADD = 0x91000210, JUMP = 0xd61f0220, OFFSETS = 0xffc003ff };
	uint64_t at = ip;

	at += is_instruction(read_code, context, at, ~0U, BTI) ? SIZE : 0;
	at += is_instruction(read_code, context, at, 0x9f00001f, ADRP) ? SIZE : 0;
	at += is_instruction(read_code, context, at, OFFSETS, LOAD) ? SIZE : 0;
	at += is_instruction(read_code, context, at, OFFSETS, ADD) ? SIZE : 0;
	return is_instruction(read_code, context, at, ~0U, JUMP) &&
	       (is_instruction(read_code, context, at - SIZE, OFFSETS, LOAD) ||
		is_instruction(read_code, context, at - SIZE, OFFSETS, ADD));
}

struct vp_user_arch vp_user_arch_arm(unsigned va_bits)
{
	/* struct rt_sigframe: siginfo; then in struct ucontext, struct sigcontext is at 176, which
	 * has a word before the registers. */
	return (struct vp_user_arch){
	    .registers = VP_DWARF_ARM_REGISTERS,
	    .ip = VP_DWARF_ARM_PC,
	    .sp = VP_DWARF_ARM_SP,
	    .fp = VP_DWARF_X29,
	    .link = VP_DWARF_X30,
	    .signal_registers = 128 + 176 + 8,
	    .address = LOW_BITS(va_bits < X86_USER_BITS ? va_bits : X86_USER_BITS),
	    .is_signal_return = arm_is_signal_return,
	    .is_plt = arm_is_plt};
}
