/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page-table formats as data: one page walk, in user space and in BPF programs, for all
 * architectures. Levels count down: entries of level 1 are pages. */
#ifndef VP_SCHEMA_PAGING_H
#define VP_SCHEMA_PAGING_H

#include <linux/types.h>

enum { VP_PAGING_LEVELS = 5 };

struct vp_paging {
	__u32 levels; /* 0: unknown */
	__u32 page_bits;
	__u32 va_bits; /* translated bits of an address; the bits above are all equal … */
	__u32 halves; /* … each half of the address space has tables of its own; 0: the bits above
			 equal the highest translated one */
	__u32 leaf_levels; /* bit N: an entry at level N may be a large page */
	__u64 root;        /* address bits of a root */
	__u64 address;     /* address bits of an entry … */
	__u64 high;        /* … and further ones, after a left shift */
	__u64 high_shift;
	__u64 present; /* bits that every valid entry has */
	__u64 leaf_mask,
	    leaf_value; /* above level 1: an entry with (entry & mask) == value is a large page */
	__u64 page_mask,
	    page_value;  /* at level 1: an entry with (entry & mask) == value is a page */
	__u64 user_page; /* entry bits that allow user access to a page … */
	__u64 user_table,
	    kernel_table; /* … bits required in tables above it, and bits that forbid it */
};

/* x86-64, with 4 or 5 levels. */
struct vp_paging vp_paging_x86(unsigned levels);
/*
 * 64-bit Arm with pages of 4, 16 or 64 KiB (12, 14, 16 bits). `wide`: 52-bit addresses in LPA2
 * format; descriptors of 64 KiB pages always support 52 bits. Result with levels 0: unsupported
 * combination.
 */
struct vp_paging vp_paging_arm(unsigned page_bits, unsigned va_bits, int wide);

static inline __attribute__((always_inline)) __u64 vp_paging_address(const struct vp_paging *paging,
								     __u64 entry)
{
	return (entry & paging->address) | (entry & paging->high) << paging->high_shift;
}

/* Whether the format is LPA2, see vp_paging_arm(). */
static inline __attribute__((always_inline)) _Bool vp_paging_is_wide(const struct vp_paging *paging)
{
	return paging->page_bits < 16 && paging->high;
}

/* Shift of the table index of that level in an address. */
static inline __attribute__((always_inline)) __u32 vp_paging_shift(const struct vp_paging *paging,
								   __u32 level)
{
	return paging->page_bits + (paging->page_bits - 3) * (level - 1);
}

/* Table index of that level; the top level may have fewer bits. */
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

/* Whether the processor would accept the entry at that level. */
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
