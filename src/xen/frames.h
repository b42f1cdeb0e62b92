/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frame numbers of PV guests. The guest's page tables and CR3 contain machine frame numbers; its
 * kernel uses its own pseudo-physical numbers. Xen has a table from the former to the latter; the
 * guest has one for the other direction, which is untrusted, but Xen maps only the guest's own
 * frames.
 */
#ifndef VP_XEN_FRAMES_H
#define VP_XEN_FRAMES_H

#include "base/macros.h"
#include "xen/library.h"

/* Xen's table, mapped: from machine frame to pseudo-physical frame. */
struct vp_xen_frames {
	const uint64_t *guest_frames;
	uint64_t count;
};

/* It stays mapped after `xen` is closed. Errors: Xen does not allow mapping it. */
struct vp_error *vp_xen_frames_map(const struct vp_xen *xen,
				   struct vp_xen_frames *ret) VP_MUST_CHECK;
void vp_xen_frames_unmap(struct vp_xen_frames *frames);
/* The guest physical address of a machine address, or ~0. */
uint64_t vp_xen_frames_translate(const struct vp_xen_frames *frames, uint64_t machine);

#endif
