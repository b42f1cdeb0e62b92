/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/frames.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/error.h"

#define PIECE (2ULL << 20) /* mapped part of Xen's M2P table */
#define PAGE 4096ULL
/* Table values for unowned or shared frames (Xen's public/arch-x86). */
#define INVALID_BITS (3ULL << 62)

static struct vp_error *map_pieces(const struct vp_xen *xen, const uint64_t *firsts, size_t pieces,
				   struct vp_xen_frames *ret)
{
	size_t pages = pieces * (PIECE / PAGE);
	uint64_t *all = vp_alloc(pages * sizeof(*all));

	for (size_t i = 0; i < pages; i++)
		all[i] = firsts[i / (PIECE / PAGE)] + i % (PIECE / PAGE);
	ret->guest_frames =
	    xen->call.memory_map(xen->memory, VP_XEN_DOMID_XEN, PROT_READ, pages, all, NULL);
	free(all);
	ret->count = pages * PAGE / sizeof(uint64_t);
	return ret->guest_frames ? NULL : vp_error_errno(errno, "cannot map Xen's table of frames");
}

struct vp_error *vp_xen_frames_map(const struct vp_xen *xen, struct vp_xen_frames *ret)
{
	unsigned long frames = 0;

	*ret = (struct vp_xen_frames){0};
	/* Xen's max_page, the number of frames: mapping beyond it fails. */
	if (xen->call.maximum_ram_page(xen->control, &frames) || !frames)
		return vp_error_errno(errno, "Xen does not report how much memory there is");
	size_t pieces = (size_t)((frames * sizeof(uint64_t) + PIECE - 1) / PIECE);
	uint64_t *firsts = vp_alloc(pieces * sizeof(*firsts));
	struct vp_error *error =
	    xen->call.machphys_mfn_list(xen->control, pieces, firsts)
		? vp_error_errno(errno, "Xen does not report where its table of %lu frames is",
				 frames)
		: map_pieces(xen, firsts, pieces, ret);
	free(firsts);
	return error;
}

void vp_xen_frames_unmap(struct vp_xen_frames *frames)
{
	if (frames->guest_frames)
		munmap((void *)frames->guest_frames, frames->count * sizeof(uint64_t));
	frames->guest_frames = NULL;
	frames->count = 0;
}

uint64_t vp_xen_frames_translate(const struct vp_xen_frames *frames, uint64_t machine)
{
	uint64_t frame = machine / PAGE;

	if (frame >= frames->count || frames->guest_frames[frame] & INVALID_BITS)
		return UINT64_MAX;
	return frames->guest_frames[frame] * PAGE + machine % PAGE;
}
