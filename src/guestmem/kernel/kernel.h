/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's kernel: its location in guest memory, and the pack that describes it. */
#ifndef VP_GUESTMEM_KERNEL_KERNEL_H
#define VP_GUESTMEM_KERNEL_KERNEL_H

#include "base/macros.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

/* Origin of the pack. */
enum vp_pack_route { VP_PACK_READ, VP_PACK_CACHED };

struct vp_guest_kernel {
	struct vp_guest_view view; /* with the kernel's own page tables */
	struct vp_kernel_pack pack;
	uint64_t text; /* address of _text, the start of the image */
	enum vp_pack_route route;
	uint64_t memmap; /* address of the struct page array; 0: unknown */
	char banner[256];
	char *lacks; /* missing item without which tasks cannot be read; NULL: none */
};

/* Locates the kernel with the vCPUs' registers and page tables. *known: registers are available; if
 * the kernel is not found with them, the guest has none or has not booted yet. */
bool vp_guest_kernel_locate(const struct vp_guest_memory *memory,
			    const struct vp_guest_registers *vcpus, size_t n_vcpus, bool *known,
			    struct vp_guest_view *ret) VP_MUST_CHECK;
/* Reads a kernel located by registers or by a scan (guestmem/kernel/scan.h). If `packs` has a pack
 * of exactly this build, the whole image is not read. `seed`: random number for a new pack's
 * evidence. Errors: an unsupported kernel. */
struct vp_error *vp_guest_kernel_read(const struct vp_guest_view *found,
				      const vp_kernel_packs *packs, uint64_t seed,
				      struct vp_guest_kernel *ret) VP_MUST_CHECK;
/* Locates the kernel with registers, and reads it. */
struct vp_error *vp_guest_kernel_find(const struct vp_guest_memory *memory,
				      const struct vp_guest_registers *vcpus, size_t n_vcpus,
				      const vp_kernel_packs *packs, uint64_t seed,
				      struct vp_guest_kernel *ret) VP_MUST_CHECK;
void vp_guest_kernel_deinit(struct vp_guest_kernel *kernel);

/* 64-bit Arm: searches for the list of modules if it is unknown: it cannot be recognized before the
 * first module is loaded. */
void vp_guest_kernel_find_modules(struct vp_guest_kernel *kernel);

/* Copies the symbol tables from the image, with zeros for unreadable pages; `tables`: offsets in
 * the copy. False: the pack's offsets are invalid. */
bool vp_guest_kernel_tables(const struct vp_guest_kernel *kernel, struct vp_buffer *bytes,
			    struct vp_kallsyms *tables) VP_MUST_CHECK;
/* Address of a symbol that is not per-CPU, or 0. */
static inline uint64_t vp_guest_kernel_symbol(const struct vp_guest_kernel *kernel,
					      struct vp_pack_symbol symbol)
{
	bool none = symbol.offset == VP_PACK_NONE || symbol.percpu;

	return none ? 0 : kernel->text + symbol.offset;
}

#endif
