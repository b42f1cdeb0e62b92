/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/paging.h"

#define BIT(n) (1ULL << (n))

/* Bits `from` up to `to`. */
static __u64 bits(unsigned from, unsigned to)
{
	return (BIT(to) - 1) << 1 & ~(BIT(from) - 1);
}

/* Intel 64 and AMD64: volume 3A, chapter 4 of Intel's manual. */
struct vp_paging vp_paging_x86(unsigned levels)
{
	enum { PRESENT = 1, USER = 4, LARGE = 0x80 };

	return (struct vp_paging){.levels = levels >= 4 && levels <= VP_PAGING_LEVELS ? levels : 0,
				  .page_bits = 12,
				  .va_bits = 12 + 9 * levels,
				  .leaf_levels = BIT(2) | BIT(3),
				  .root = bits(12, 51),
				  .address = bits(12, 51),
				  .present = PRESENT,
				  .leaf_mask = LARGE,
				  .leaf_value = LARGE,
				  .page_mask = PRESENT,
				  .page_value = PRESENT,
				  .user_page = USER,
				  .user_table = USER};
}

/*
 * Arm Architecture Reference Manual, D8 "The AArch64 Virtual Memory System Architecture". Blocks
 * are possible at level 2 as counted here, and at higher levels if the processor has enough address
 * bits. Contiguous entries each have their own address.
 */
struct vp_paging vp_paging_arm(unsigned page_bits, unsigned va_bits, int wide)
{
	enum { VALID = 1, TABLE = 2, SMALLEST_VA = 25, LARGEST_VA = 52 };

	if ((page_bits != 12 && page_bits != 14 && page_bits != 16) || va_bits < SMALLEST_VA ||
	    va_bits > LARGEST_VA)
		return (struct vp_paging){0};
	const unsigned per_level = page_bits - 3;
	struct vp_paging paging = {.page_bits = page_bits,
				   .va_bits = va_bits,
				   .halves = 1,
				   .leaf_levels = BIT(2),
				   .root = ~0ULL,
				   .address = bits(page_bits, 47),
				   .present = VALID,
				   .leaf_mask = TABLE,
				   .page_mask = VALID | TABLE,
				   .page_value = VALID | TABLE,
				   .user_page = BIT(6),      /* AP[1] */
				   .kernel_table = BIT(61)}; /* APTable[0] */

	paging.levels = (va_bits - page_bits + per_level - 1) / per_level;
	if (page_bits == 12 || wide || page_bits == 16)
		paging.leaf_levels |= BIT(3);
	if (page_bits == 12 && wide)
		paging.leaf_levels |= BIT(4);
	if (page_bits == 16) {
		paging.high = bits(12, 15);
		paging.high_shift = 48 - 12;
	} else if (wide) {
		paging.address = bits(page_bits, 49);
		paging.high = bits(8, 9);
		paging.high_shift = 50 - 8;
	}
	return paging;
}
