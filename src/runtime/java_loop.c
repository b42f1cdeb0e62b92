/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/java_loop.h"

enum {
	BYTES = 32, /* from the safepoint to the end of the branch: a comparison is between them */
	LONGEST_LOOP = 1 << 20,
	REX = 0x40,
	TEST = 0x85,
	JCC_SHORT = 0x70,
	JCC_LONG = 0x0f,
	JCC_LONG_SECOND = 0x80,
	ARM_INSTRUCTION = 4,
};

static bool goes_back(int32_t distance)
{
	return distance < 0 && distance > -LONGEST_LOOP;
}

/* The length of `test %eax,(register)`; 0: another instruction. */
static unsigned x86_poll(const uint8_t *bytes)
{
	const unsigned prefix = (bytes[0] & 0xf0) == REX;
	const uint8_t modrm = bytes[prefix + 1];

	return bytes[prefix] == TEST && modrm >> 6 == 0 && (modrm >> 3 & 7) == 0 ? prefix + 2 : 0;
}

static unsigned x86_loop(const uint8_t *bytes)
{
	int32_t far;

	for (unsigned at = x86_poll(bytes); at && at + 6 <= BYTES; at++) {
		if ((bytes[at] & 0xf0) == JCC_SHORT && (int8_t)bytes[at + 1] < 0)
			return at + 2;
		memcpy(&far, bytes + at + 2, sizeof(far));
		if (bytes[at] == JCC_LONG && (bytes[at + 1] & 0xf0) == JCC_LONG_SECOND &&
		    goes_back(far))
			return at + 6;
	}
	return 0;
}

/* `ldr wzr, [register]`, and a branch if a condition, a register or a bit is set or not. */
static unsigned arm_loop(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	if ((word & 0xfffffc1f) != 0xb940001f)
		return 0;
	for (unsigned at = ARM_INSTRUCTION; at + ARM_INSTRUCTION <= BYTES; at += ARM_INSTRUCTION) {
		memcpy(&word, bytes + at, sizeof(word));
		const bool by_condition = word >> 24 == 0x54,
			   by_value = (word >> 24 & 0x7e) == 0x34,
			   by_bit = (word >> 24 & 0x7e) == 0x36;
		if (((by_condition || by_value) && word & 1U << 23) || (by_bit && word & 1U << 18))
			return at + ARM_INSTRUCTION;
	}
	return 0;
}

bool vp_java_loop_end(const struct vp_process_memory *memory, uint64_t addr, uint64_t *ret)
{
	uint8_t bytes[BYTES];

	if (!vp_process_read(memory, addr, bytes, sizeof(bytes)))
		return false;
	unsigned size = x86_loop(bytes);
	if (!size)
		size = arm_loop(bytes);
	*ret = addr + size;
	return size;
}
