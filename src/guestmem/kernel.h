/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's kernel: where it is in the guest's memory, and the pack that explains it. */
#ifndef VP_GUESTMEM_KERNEL_H
#define VP_GUESTMEM_KERNEL_H

#include "base/macros.h"
#include "guestmem/guest_view.h"
#include "guestmem/pack.h"

/* How the pack was had. */
enum vp_pack_route { VP_PACK_READ, VP_PACK_CACHED };

struct vp_guest_kernel {
	struct vp_guest_view view; /* by the kernel's own page tables */
	struct vp_kernel_pack pack;
	uint64_t text; /* address of _text; the image begins there */
	enum vp_pack_route route;
	uint64_t memmap; /* address of the first physical page's struct page; 0: not known */
	char banner[256];
	char *lacks; /* what is missing for telling its tasks; NULL: nothing */
};

/*
 * Where the kernel is, by the vCPUs' registers and page tables. *known: there are registers; the
 * guest then has no kernel, or has not booted yet.
 */
bool vp_guest_kernel_locate(const struct vp_guest_memory *memory,
			    const struct vp_guest_registers *vcpus, size_t n_vcpus, bool *known,
			    struct vp_guest_view *ret) VP_MUST_CHECK;
/*
 * Reads the kernel that was found, by registers or by a scan (guestmem/scan.h). A pack among
 * `packs` that is of this very build saves reading the whole image; `seed` is a random number for a
 * new one's evidence. Errors: one that is not understood.
 */
struct vp_error *vp_guest_kernel_read(const struct vp_guest_view *found,
				      const vp_kernel_packs *packs, uint64_t seed,
				      struct vp_guest_kernel *ret) VP_MUST_CHECK;
/* Both, by registers. */
struct vp_error *vp_guest_kernel_find(const struct vp_guest_memory *memory,
				      const struct vp_guest_registers *vcpus, size_t n_vcpus,
				      const vp_kernel_packs *packs, uint64_t seed,
				      struct vp_guest_kernel *ret) VP_MUST_CHECK;
void vp_guest_kernel_deinit(struct vp_guest_kernel *kernel);

/*
 * A copy of the part of the image that has the symbol tables, with zeros where it cannot be read;
 * `tables` are where they are in it. False: the addresses in the pack are impossible.
 */
bool vp_guest_kernel_tables(const struct vp_guest_kernel *kernel, struct vp_buffer *bytes,
			    struct vp_kallsyms *tables) VP_MUST_CHECK;
/* Address of a symbol that is not per CPU, or 0. */
static inline uint64_t vp_guest_kernel_symbol(const struct vp_guest_kernel *kernel,
					      struct vp_pack_symbol symbol)
{
	bool none = symbol.offset == VP_PACK_NONE || symbol.percpu;

	return none ? 0 : kernel->text + symbol.offset;
}

#endif
