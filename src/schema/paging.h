/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A processor's page tables as data: one walker, in user space or in a BPF program, goes through
 * those of any. Levels count down: tables of level 1 have pages.
 */
#ifndef VP_SCHEMA_PAGING_H
#define VP_SCHEMA_PAGING_H

#include <linux/types.h>

enum { VP_PAGING_LEVELS = 5 };

struct vp_paging {
	__u32 levels; /* 0: not known */
	__u32 page_bits;
	__u32 va_bits; /* of addresses that the tables translate; those above are all the same … */
	__u32 halves;  /* … as each other: each half has tables of its own; 0: as the highest */
	__u32 leaf_levels; /* bit N: an entry at level N may be a page itself */
	__u64 root;        /* bits of a root that are its address */
	__u64 address;     /* bits of an entry that are of the address … */
	__u64 high;        /* … and those that are, once they are moved to the left so far */
	__u64 high_shift;
	__u64 present;                  /* bits that each entry has */
	__u64 leaf_mask, leaf_value;    /* above level 1: by these it is a page itself */
	__u64 page_mask, page_value;    /* at level 1: by these it is a page */
	__u64 user_page;                /* bits by which user space may access a page … */
	__u64 user_table, kernel_table; /* … bits that are needed on the way to it, or forbid it */
};

/* x86-64, with 4 or 5 levels. */
struct vp_paging vp_paging_x86(unsigned levels);
/*
 * 64-bit Arm: pages of 4, 16 or 64 KiB (12, 14, 16 bits). `wide`: descriptors have addresses of 52
 * bits in the way of LPA2; those of 64 KiB pages always have room for them. Levels 0: no processor
 * has that.
 */
struct vp_paging vp_paging_arm(unsigned page_bits, unsigned va_bits, int wide);

static inline __attribute__((always_inline)) __u64 vp_paging_address(const struct vp_paging *paging,
								     __u64 entry)
{
	return (entry & paging->address) | (entry & paging->high) << paging->high_shift;
}

/* With LPA2, as vp_paging_arm() has it. */
static inline __attribute__((always_inline)) _Bool vp_paging_is_wide(const struct vp_paging *paging)
{
	return paging->page_bits < 16 && paging->high;
}

/* How far the index into a table of that level is to the right in an address. */
static inline __attribute__((always_inline)) __u32 vp_paging_shift(const struct vp_paging *paging,
								   __u32 level)
{
	return paging->page_bits + (paging->page_bits - 3) * (level - 1);
}

/* Index into the table of that level: the topmost may be a small one. */
static inline __attribute__((always_inline)) __u64 vp_paging_index(const struct vp_paging *paging,
								   __u32 level, __u64 va)
{
	__u64 translated = va & ((1ULL << paging->va_bits) - 1);

	return translated >> vp_paging_shift(paging, level) &
	       ((1ULL << (paging->page_bits - 3)) - 1);
}

static inline __attribute__((always_inline)) _Bool vp_paging_is_leaf(const struct vp_paging *paging,
								     __u32 level, __u64 entry)
{
	return level == 1 || (entry & paging->leaf_mask) == paging->leaf_value;
}

/* Whether the processor takes the entry of that level. */
static inline __attribute__((always_inline)) _Bool
vp_paging_is_valid(const struct vp_paging *paging, __u32 level, __u64 entry)
{
	if ((entry & paging->present) != paging->present)
		return 0;
	if (level == 1)
		return (entry & paging->page_mask) == paging->page_value;
	return !vp_paging_is_leaf(paging, level, entry) || paging->leaf_levels >> level & 1;
}

#endif
