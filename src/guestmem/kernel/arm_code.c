/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/arm_code.h"

#include <string.h>

enum { REGISTERS = 32, CALL_CHANGES = 19, WORD = 4 };

/* Content of a register: an address, the variable there, that variable plus one, or the CPU's base
 * of per-CPU variables. */
enum content { UNKNOWN, ADDRESS, LOADED, INCREMENTED, CPU_BASE };

struct known {
	enum content content;
	uint64_t address;
};

static uint64_t page_of_adrp(uint32_t word, uint64_t at)
{
	uint64_t pages = (uint64_t)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);
	const uint64_t sign = 1 << 20;

	return (at & ~0xfffULL) + (((pages ^ sign) - sign) << 12);
}

static struct known add(struct known from, uint32_t word)
{
	uint64_t amount = word >> 10 & 0xfff;

	if (word >> 22 & 1)
		amount <<= 12;
	if (from.content == ADDRESS)
		return (struct known){ADDRESS, from.address + amount};
	if (from.content == LOADED && amount == 1)
		return (struct known){INCREMENTED, from.address};
	return (struct known){0};
}

static bool is_call(uint32_t word)
{
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;
}

/* Address that a 64-bit load or store with an unsigned offset accesses, if it is known. */
static struct known accessed(const struct known *registers, uint32_t word)
{
	struct known base = registers[word >> 5 & 31];

	if (base.content != ADDRESS)
		return (struct known){0};
	return (struct known){LOADED, base.address + (uint64_t)(word >> 10 & 0xfff) * 8};
}

/* MRS of TPIDR_EL1, or with VHE of TPIDR_EL2. */
static bool reads_cpu_base(uint32_t word)
{
	return (word & ~31U) == 0xd538d080 || (word & ~31U) == 0xd53cd040;
}

/* Branches, and system instructions except MRS, change no register by themselves. */
static bool changes_none(uint32_t word)
{
	return (word & 0x1c000000) == 0x14000000 && (word & 0xfff00000) != 0xd5300000;
}

/* All other instructions: their first register is unknown after them; that of a load of two, the
 * second one, too. A call changes the registers of arguments. */
static void forget(struct known *registers, uint32_t word)
{
	if (is_call(word))
		memset(registers, 0, CALL_CHANGES * sizeof(*registers));
	if (changes_none(word))
		return;
	registers[word & 31] = (struct known){0};
	if ((word & 0x3a000000) == 0x28000000)
		registers[word >> 10 & 31] = (struct known){0};
}

static bool is_store(uint32_t word)
{
	return (word & 0xffc00000) == 0xf9000000;
}

/* Sets the registers after the instruction at `at`. */
static void follow(struct known *registers, uint32_t word, uint64_t at)
{
	struct known *first = &registers[word & 31];

	if ((word & 0x9f000000) == 0x90000000)
		*first = (struct known){ADDRESS, page_of_adrp(word, at)};
	else if ((word & 0xff800000) == 0x91000000)
		*first = add(registers[word >> 5 & 31], word);
	else if ((word & 0xffc00000) == 0xf9400000)
		*first = accessed(registers, word);
	else if (reads_cpu_base(word))
		*first = (struct known){CPU_BASE};
	else if (!is_store(word))
		forget(registers, word);
}

static bool is_increment(const struct known *registers, uint32_t store)
{
	struct known value = registers[store & 31], at = accessed(registers, store);

	return value.content == INCREMENTED && at.content == LOADED && value.address == at.address;
}

/* Whether the instruction adds the CPU's base to an address, or loads from that sum. */
static bool is_percpu(const struct known *registers, uint32_t word, uint64_t *ret)
{
	const bool adds = (word & 0xffe0fc00) == 0x8b000000;
	const bool loads = (word & 0xffe0fc00) == 0xf8606800;
	const struct known *operands[] = {&registers[word >> 5 & 31], &registers[word >> 16 & 31]};

	for (unsigned i = 0; (adds || loads) && i < 2; i++) {
		if (operands[i]->content != ADDRESS || operands[!i]->content != CPU_BASE)
			continue;
		*ret = operands[i]->address;
		return true;
	}
	return false;
}

bool vp_arm_code_find_increment(const void *code, size_t size, uint64_t address, uint64_t *ret)
{
	struct known registers[REGISTERS] = {0};
	uint32_t word;

	for (size_t i = 0; i + WORD <= size; i += WORD) {
		memcpy(&word, (const char *)code + i, WORD);
		if (is_store(word) && is_increment(registers, word)) {
			*ret = registers[word & 31].address;
			return true;
		}
		follow(registers, word, address + i);
	}
	return false;
}

bool vp_arm_code_find_percpu(const void *code, size_t size, uint64_t address, uint64_t *ret)
{
	struct known registers[REGISTERS] = {0};
	uint32_t word;

	for (size_t i = 0; i + WORD <= size; i += WORD) {
		memcpy(&word, (const char *)code + i, WORD);
		if (is_percpu(registers, word, ret))
			return true;
		follow(registers, word, address + i);
	}
	return false;
}
