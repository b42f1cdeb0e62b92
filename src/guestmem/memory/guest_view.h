/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translates a guest's virtual addresses: with its page tables, and with shortcuts for the kernel
 * image and the direct map. */
#ifndef VP_GUESTMEM_MEMORY_GUEST_VIEW_H
#define VP_GUESTMEM_MEMORY_GUEST_VIEW_H

#include "base/macros.h"
#include "guestmem/memory/memory.h"
#include "schema/paging.h"

/* Address range of x86-64 Linux kernel images. */
#define VP_KERNEL_MAP 0xffffffff80000000ULL
#define VP_KERNEL_MAP_SIZE 0x40000000ULL
/* Default address without KASLR: CONFIG_PHYSICAL_START is 16 MiB. */
#define VP_KERNEL_LINKED (VP_KERNEL_MAP + 0x1000000ULL)
/* Alignment of kernels, physical and virtual: on 64-bit Arm by EFI's boot loader, with KASLR. */
#define VP_X86_KERNEL_ALIGN 0x200000ULL
#define VP_ARM_KERNEL_ALIGN 0x10000ULL
/* Maximum size of a kernel image, with all of its data. */
#define VP_KERNEL_IMAGE_MAX 0x10000000ULL

struct vp_guest_view {
	const struct vp_guest_memory *memory;
	uint64_t root; /* physical address of the top-level page table; 0: none */
	struct vp_paging paging;
	/* 64-bit Arm: registers with the per-CPU bases. */
	const struct vp_guest_registers *vcpus;
	size_t n_vcpus;
	/* Contiguous ranges: the kernel image, and the direct map of all memory. 0: unknown. */
	uint64_t image_va, image_gpa, image_size;
	uint64_t direct_map;
};

struct vp_guest_page {
	uint64_t gpa;  /* guest physical address */
	uint64_t left; /* bytes up to the end of the page */
	bool user;     /* user space has access */
};

/* Walks the page tables, without shortcuts. */
bool vp_guest_view_walk(const struct vp_guest_view *view, uint64_t va,
			struct vp_guest_page *ret) VP_MUST_CHECK;
/* Finds the kernel image around one of its addresses: pages that are contiguous, both virtually and
 * physically. False: the range is too small. */
bool vp_guest_view_find_image(struct vp_guest_view *view, uint64_t inside) VP_MUST_CHECK;
/* Finds the first mapped page in [from, to); *va: its address. False: none, or too many holes
 * before it. */
bool vp_guest_view_first_page(const struct vp_guest_view *view, uint64_t from, uint64_t to,
			      uint64_t *va, struct vp_guest_page *ret) VP_MUST_CHECK;
/* Page-table format `number`, from 0, of kernels of that architecture; false: no more. */
bool vp_guest_view_paging_of_kernels(enum vp_guest_arch arch, unsigned number,
				     struct vp_paging *ret) VP_MUST_CHECK;
bool vp_guest_view_translate(const struct vp_guest_view *view, uint64_t va,
			     struct vp_guest_page *ret) VP_MUST_CHECK;
bool vp_guest_view_read(const struct vp_guest_view *view, uint64_t va, void *bytes,
			size_t size) VP_MUST_CHECK;
bool vp_guest_view_u64(const struct vp_guest_view *view, uint64_t va, uint64_t *ret) VP_MUST_CHECK;
bool vp_guest_view_u32(const struct vp_guest_view *view, uint64_t va, uint32_t *ret) VP_MUST_CHECK;
/* Reads a text that is NUL-terminated within `size` bytes; the bytes after it may be unreadable. */
bool vp_guest_view_string(const struct vp_guest_view *view, uint64_t va, char *text,
			  size_t size) VP_MUST_CHECK;

#endif
