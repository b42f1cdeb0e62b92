/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's virtual addresses: through its page tables, and short cuts for a known kernel. */
#ifndef VP_GUESTMEM_GUEST_VIEW_H
#define VP_GUESTMEM_GUEST_VIEW_H

#include "base/macros.h"
#include "guestmem/memory.h"
#include "schema/paging.h"

/* Where x86-64 Linux links its kernel image, and how far it may be moved. */
#define VP_KERNEL_MAP 0xffffffff80000000ULL
#define VP_KERNEL_MAP_SIZE 0x40000000ULL
/* Where it begins without KASLR: the default of CONFIG_PHYSICAL_START is 16 MiB. */
#define VP_KERNEL_LINKED (VP_KERNEL_MAP + 0x1000000ULL)
/* Kernels begin at multiples of it, in memory and in addresses: 64-bit Arm's by EFI's boot loader,
 * with KASLR. */
#define VP_X86_KERNEL_ALIGN 0x200000ULL
#define VP_ARM_KERNEL_ALIGN 0x10000ULL
/* The largest image that is believed, with all of its data. */
#define VP_KERNEL_IMAGE_MAX 0x10000000ULL

struct vp_guest_view {
	const struct vp_guest_memory *memory;
	uint64_t root; /* physical address of the top page table; 0: none */
	struct vp_paging paging;
	/* 64-bit Arm: registers that lead to each CPU's variables. */
	const struct vp_guest_registers *vcpus;
	size_t n_vcpus;
	/* The kernel's image is in one piece; so is its direct map of all memory. 0: not known. */
	uint64_t image_va, image_gpa, image_size;
	uint64_t direct_map;
};

struct vp_guest_page {
	uint64_t gpa;  /* of the address */
	uint64_t left; /* bytes up to the page's end */
	bool user;     /* user space may access it */
};

/* Walks the page tables, short cuts left out. */
bool vp_guest_view_walk(const struct vp_guest_view *view, uint64_t va,
			struct vp_guest_page *ret) VP_MUST_CHECK;
/*
 * The kernel's image around an address of it, by the page tables: pieces next to each other in both
 * kinds of address. False: no such stretch is large enough.
 */
bool vp_guest_view_find_image(struct vp_guest_view *view, uint64_t inside) VP_MUST_CHECK;
/*
 * The first page that is mapped from an address on, below another one: the page, and the address
 * there. False: not found, or only after a long search.
 */
bool vp_guest_view_first_page(const struct vp_guest_view *view, uint64_t from, uint64_t to,
			      uint64_t *va, struct vp_guest_page *ret) VP_MUST_CHECK;
/* The page tables that kernels of that processor have, one after the other, from 0 on; false: there
 * are no more. */
bool vp_guest_view_paging_of_kernels(enum vp_guest_arch arch, unsigned number,
				     struct vp_paging *ret) VP_MUST_CHECK;
bool vp_guest_view_translate(const struct vp_guest_view *view, uint64_t va,
			     struct vp_guest_page *ret) VP_MUST_CHECK;
bool vp_guest_view_read(const struct vp_guest_view *view, uint64_t va, void *bytes,
			size_t size) VP_MUST_CHECK;
bool vp_guest_view_u64(const struct vp_guest_view *view, uint64_t va, uint64_t *ret) VP_MUST_CHECK;
bool vp_guest_view_u32(const struct vp_guest_view *view, uint64_t va, uint32_t *ret) VP_MUST_CHECK;
/* Text that ends with a zero byte within `size` bytes; what follows it may be unreadable. */
bool vp_guest_view_string(const struct vp_guest_view *view, uint64_t va, char *text,
			  size_t size) VP_MUST_CHECK;

#endif
