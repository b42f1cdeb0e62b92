/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Made page tables of 64-bit Arm, as the words of a memory that is empty otherwise: for the walk of
 * the reader of guest memory and for that of the BPF programs. */
#ifndef VP_TESTS_ARM_TABLES_H
#define VP_TESTS_ARM_TABLES_H

#include "schema/paging.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARM_VALID 1ULL
#define ARM_TABLE 3ULL
#define ARM_PAGE 3ULL
#define ARM_USER (1ULL << 6)
#define ARM_CONTIGUOUS (1ULL << 52)
/* In a table's entry: no access of user space to what is below. */
#define ARM_KERNEL_TABLE (1ULL << 61)

/* Each table at a multiple of 64 KiB, the top one first. */
enum { ARM_TABLES_AT = 0x10000, ARM_TABLE_STEP = 0x10000, ARM_WORDS = 256 };

struct arm_word {
	uint64_t at, value;
};

struct arm_words {
	struct arm_word at[ARM_WORDS];
	size_t count;
};

struct arm_granule {
	unsigned page_bits, va_bits;
	bool wide;
	unsigned levels;
	/* Entries of a contiguous block at levels 1, 2, …; 0: contiguous entries are impossible. */
	unsigned contiguous[VP_PAGING_LEVELS];
};

/* Arm Architecture Reference Manual, D8.7.1 "The Contiguous bit". */
static const struct arm_granule arm_granules[] = {
    {12, 48, false, 4, {16, 16, 16}}, {12, 39, false, 3, {16, 16, 16}},
    {12, 52, true, 5, {16, 16, 16}},  {14, 47, false, 3, {128, 32}},
    {14, 48, false, 4, {128, 32}},    {14, 52, true, 4, {128, 32}},
    {14, 36, false, 2, {128, 32}},    {16, 48, false, 3, {32, 32}},
    {16, 52, false, 3, {32, 32, 16}}, {16, 42, false, 2, {32, 32}},
};

static inline struct vp_paging arm_granule_paging(const struct arm_granule *granule)
{
	return vp_paging_arm(granule->page_bits, granule->va_bits, granule->wide);
}

/* Whether the architecture allows a block at that level, counted from 1: the pages. */
static inline bool arm_granule_has_block(const struct arm_granule *granule, unsigned level)
{
	return level == 2 || (level == 3 && (granule->page_bits != 14 || granule->wide)) ||
	       (level == 4 && granule->page_bits == 12 && granule->wide);
}

static inline uint64_t arm_granule_size(const struct arm_granule *granule, unsigned level)
{
	return 1ULL << (granule->page_bits + (granule->page_bits - 3) * (level - 1));
}

/* Address bits 51 to 48 are elsewhere in entries of 64 KiB pages, 51 and 50 in LPA2's. */
static inline uint64_t arm_granule_entry(const struct arm_granule *granule, uint64_t gpa)
{
	if (granule->page_bits == 16)
		return (gpa & 0xffffffff0000ULL) | gpa >> 48 << 12;
	return granule->wide ? (gpa & 0x3ffffffffffffULL) | gpa >> 50 << 8 : gpa;
}

/* An address in the upper half with other digits in each index. */
static inline uint64_t arm_granule_address(const struct arm_granule *granule)
{
	return -(1ULL << granule->va_bits) | (0x5a5a5a5a5a5a5a5aULL >> (64 - granule->va_bits));
}

static inline void arm_words_put(struct arm_words *words, uint64_t at, uint64_t value)
{
	if (words->count == ARM_WORDS)
		abort();
	words->at[words->count++] = (struct arm_word){at, value};
}

/* Tables down to `level` for that address; returns where its entry there is to be. */
static inline uint64_t arm_words_put_tables(struct arm_words *words,
					    const struct arm_granule *granule, uint64_t va,
					    unsigned level)
{
	const struct vp_paging paging = arm_granule_paging(granule);
	uint64_t table = ARM_TABLES_AT;

	for (unsigned at = granule->levels; at > level; at--, table += ARM_TABLE_STEP)
		arm_words_put(words, table + 8 * vp_paging_index(&paging, at, va),
			      (table + ARM_TABLE_STEP) | ARM_TABLE);
	return table + 8 * vp_paging_index(&paging, level, va);
}

#endif
