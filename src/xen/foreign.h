/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps a domain's memory page by page through a descriptor of /dev/xen/privcmd that is opened
 * read-only and restricted to this domain. No library is needed, so it also works in a confined
 * process.
 */
#ifndef VP_XEN_FOREIGN_H
#define VP_XEN_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* The mapping ioctl: IOCTL_PRIVCMD_MMAPBATCH_V2. */
#define VP_XEN_MAP_REQUEST 0x205004UL

/* A descriptor restricted to that domain. Errors: no permission; the kernel does not support the
 * restriction. */
struct vp_error *vp_xen_foreign_open(uint16_t domain, int *ret) VP_MUST_CHECK;

struct vp_xen_foreign;

/* Maps through the descriptor, which must outlive it. */
struct vp_xen_foreign *vp_xen_foreign_new(int fd, uint16_t domain);
/* Maps these frames as adjacent pages, for munmap(); `errors`: result of each (0: success). NULL:
 * failed. */
typedef char *(*vp_xen_map)(void *context, const uint64_t *frames, size_t pages, int *errors);
/* Maps with that function instead. */
struct vp_xen_foreign *vp_xen_foreign_new_by(vp_xen_map map, void *context);
/* For a PV guest, whose memory is addressed by its own frame numbers; `shared_info`: machine frame
 * of the page shared by the guest and Xen. False: the guest does not publish its machine frames. */
bool vp_xen_foreign_is_pv(struct vp_xen_foreign *foreign, uint64_t shared_info) VP_MUST_CHECK;
void vp_xen_foreign_free(struct vp_xen_foreign *foreign);
/* Reads guest physical memory. False unless all of it is available. Mappings for small reads are
 * cached for up to a second. */
bool vp_xen_foreign_read(struct vp_xen_foreign *foreign, uint64_t address, void *bytes,
			 size_t size) VP_MUST_CHECK;
/* Sets whether each of these pages exists (1). */
void vp_xen_foreign_backed(struct vp_xen_foreign *foreign, uint64_t address, size_t pages,
			   unsigned char *ret);
/* Unmaps everything: a domain whose pages are mapped cannot be destroyed. */
void vp_xen_foreign_drop(struct vp_xen_foreign *foreign);

#endif
