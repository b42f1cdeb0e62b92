/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/arm_code.h"

#include <string.h>

enum { REGISTERS = 32, CALL_CHANGES = 19, WORD = 4 };

/* Content of a register: an address, the variable there, or that variable plus one. */
enum content { UNKNOWN, ADDRESS, LOADED, INCREMENTED };

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

/* All other instructions: their first register is unknown after them; that of a load of two, the
 * second one, too. A call changes the registers of arguments. */
static void forget(struct known *registers, uint32_t word)
{
	if (is_call(word))
		memset(registers, 0, CALL_CHANGES * sizeof(*registers));
	registers[word & 31] = (struct known){0};
	if ((word & 0x3a000000) == 0x28000000)
		registers[word >> 10 & 31] = (struct known){0};
}

static bool is_increment(const struct known *registers, uint32_t store)
{
	struct known value = registers[store & 31], at = accessed(registers, store);

	return value.content == INCREMENTED && at.content == LOADED && value.address == at.address;
}

bool vp_arm_code_find_increment(const void *code, size_t size, uint64_t address, uint64_t *ret)
{
	struct known registers[REGISTERS] = {0};
	uint32_t word;

	for (size_t i = 0; i + WORD <= size; i += WORD) {
		memcpy(&word, (const char *)code + i, WORD);
		struct known *first = &registers[word & 31];
		if ((word & 0x9f000000) == 0x90000000) {
			*first = (struct known){ADDRESS, page_of_adrp(word, address + i)};
		} else if ((word & 0xff800000) == 0x91000000) {
			*first = add(registers[word >> 5 & 31], word);
		} else if ((word & 0xffc00000) == 0xf9400000) {
			*first = accessed(registers, word);
		} else if ((word & 0xffc00000) == 0xf9000000) {
			if (!is_increment(registers, word))
				continue;
			*ret = first->address;
			return true;
		} else {
			forget(registers, word);
		}
	}
	return false;
}
