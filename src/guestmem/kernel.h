/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's kernel: where it is in the guest's memory, and the pack that explains it. */
#ifndef VP_GUESTMEM_KERNEL_H
#define VP_GUESTMEM_KERNEL_H

#include "guestmem/pack.h"
#include "guestmem/view.h"

/* How the pack was had. */
enum vp_pack_route { VP_PACK_READ, VP_PACK_CACHED };

struct vp_guest_kernel {
	struct vp_guest_view view; /* by the kernel's own page tables */
	struct vp_kernel_pack pack;
	uint64_t text; /* address of _text; the image begins there */
	enum vp_pack_route route;
	bool by_scan; /* found without the vCPU's registers */
	char banner[256];
	char *lacks; /* what is missing for telling its tasks; NULL: nothing */
};

/*
 * Finds the kernel by the vCPUs' registers or, if those are not known, by looking through the
 * memory. A pack among `packs` that is of this very build saves reading the whole image; `seed` is
 * a random number for a new one's evidence. Errors: a guest without a Linux kernel, or one that is
 * not understood.
 */
struct vp_error *vp_guest_kernel_find(const struct vp_guest_memory *memory,
				      const struct vp_guest_registers *vcpus, size_t n_vcpus,
				      const vp_kernel_packs *packs, uint64_t seed,
				      struct vp_guest_kernel *ret) VP_MUST_CHECK;
void vp_guest_kernel_deinit(struct vp_guest_kernel *kernel);

/*
 * A copy of the part of the image that has the symbol tables, with zeros where it cannot be read;
 * `tables` are where they are in it. False if they cannot be where the pack says.
 */
bool vp_guest_kernel_tables(const struct vp_guest_kernel *kernel, struct vp_buffer *bytes,
			    struct vp_kallsyms *tables) VP_MUST_CHECK;
/* Address of a symbol that is not per CPU; 0: there is none. */
uint64_t vp_guest_kernel_symbol(const struct vp_guest_kernel *kernel, struct vp_pack_symbol symbol);

#endif
