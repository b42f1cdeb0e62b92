/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differences between architectures for unwinding user space: DWARF register numbers, calls, and
 * the code and stack of signal handlers' returns. */
#ifndef VP_UNWIND_USER_ARCH_H
#define VP_UNWIND_USER_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* x86-64. */
enum {
	VP_DWARF_RAX = 0,
	VP_DWARF_RDX = 1,
	VP_DWARF_RCX = 2,
	VP_DWARF_RBX = 3,
	VP_DWARF_RSI = 4,
	VP_DWARF_RDI = 5,
	VP_DWARF_RBP = 6,
	VP_DWARF_RSP = 7,
	VP_DWARF_R8 = 8,
	VP_DWARF_R12 = 12,
	VP_DWARF_R15 = 15,
	VP_DWARF_RIP = 16,
	VP_DWARF_X86_REGISTERS
};
/* 64-bit Arm: x0 to x30. Tables have no number for PC. */
enum {
	VP_DWARF_X19 = 19,
	VP_DWARF_X29 = 29,
	VP_DWARF_X30 = 30,
	VP_DWARF_ARM_SP = 31,
	VP_DWARF_ARM_PC = 32,
	VP_DWARF_ARM_REGISTERS
};
/* The largest number of any architecture. */
enum { VP_DWARF_REGISTERS = VP_DWARF_ARM_REGISTERS, VP_DWARF_NONE = 0xff };

typedef bool (*vp_user_read)(void *context, uint64_t address, void *bytes, size_t size);

enum vp_user_call {
	VP_USER_CALL_NONE,
	VP_USER_CALL_SOMEWHERE, /* the target is not known, except maybe a PLT entry */
	VP_USER_CALL_TARGET,
};

struct vp_user_arch {
	uint8_t registers, ip, sp, fp;
	/* Register where a call puts the return address; VP_DWARF_NONE: on the stack. */
	uint8_t link;
	/* Where the registers are in the frame of a signal, from its stack pointer on, and their
	 * order; NULL: that of DWARF. */
	uint16_t signal_registers;
	const uint8_t *signal_order;
	/* Bits of an address of user space. The others may be a signature or a tag. */
	uint64_t address;
	/* Whether the code at `ip` is what signal handlers return to. */
	bool (*is_signal_return)(vp_user_read read_code, void *context, uint64_t ip);
	/* Whether the code at `ip` is the rest of a PLT entry. */
	bool (*is_plt)(vp_user_read read_code, void *context, uint64_t ip);
	/* The call instruction that ends at `ip`. NULL: a return address on the stack does not show
	 * where its caller's frame is, and none is guessed. */
	enum vp_user_call (*call_before)(vp_user_read read_code, void *context, uint64_t ip,
					 uint64_t *target);
};

struct vp_user_arch vp_user_arch_x86(void);
/* `va_bits`: bits of an address of user space. */
struct vp_user_arch vp_user_arch_arm(unsigned va_bits);

#endif
