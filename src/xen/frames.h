/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Machine frames of PV guests. Such a guest's page tables, and its CR3, have the machine's frames;
 * its kernel counts its memory in frames of its own. Xen has a table from the first to the second;
 * the guest has one for the other way, which is believed no more than anything of its own: Xen maps
 * none but the guest's frames.
 */
#ifndef VP_XEN_FRAMES_H
#define VP_XEN_FRAMES_H

#include "base/macros.h"
#include "xen/library.h"

/* Xen's table, mapped: by machine frame, the guest's. */
struct vp_xen_frames {
	const uint64_t *guest_frames;
	uint64_t count;
};

/* It stays mapped without `xen`. Errors: Xen does not let it be mapped. */
struct vp_error *vp_xen_frames_map(const struct vp_xen *xen,
				   struct vp_xen_frames *ret) VP_MUST_CHECK;
void vp_xen_frames_unmap(struct vp_xen_frames *frames);
/* The guest's address of a machine address, or ~0. */
uint64_t vp_xen_frames_translate(const struct vp_xen_frames *frames, uint64_t machine);

#endif
