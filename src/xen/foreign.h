/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A domain's memory, mapped page by page through one descriptor of /dev/xen/privcmd that can do no
 * more than that: it is opened to read, and for this domain alone. No library is needed, so that it
 * serves in a process without rights, too.
 */
#ifndef VP_XEN_FOREIGN_H
#define VP_XEN_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* The ioctl that maps: IOCTL_PRIVCMD_MMAPBATCH_V2. */
#define VP_XEN_MAP_REQUEST 0x205004UL

/* A descriptor for that domain. Errors: no rights, a kernel that cannot restrict it. */
struct vp_error *vp_xen_foreign_open(uint16_t domain, int *ret) VP_MUST_CHECK;

struct vp_xen_foreign;

/* Maps by the descriptor, which outlives it. */
struct vp_xen_foreign *vp_xen_foreign_new(int fd, uint16_t domain);
/*
 * Maps these frames as pages that lie together, to be unmapped with munmap(); `errors` has the
 * result of each (0). NULL: none can be.
 */
typedef char *(*vp_xen_map)(void *context, const uint64_t *frames, size_t pages, int *errors);
/* Maps by that function instead. */
struct vp_xen_foreign *vp_xen_foreign_new_by(vp_xen_map map, void *context);
/* For a PV guest, whose memory is addressed by its own frames; `shared_info` is the machine frame
 * that Xen and it share. False: the guest does not publish its machine frames. */
bool vp_xen_foreign_is_pv(struct vp_xen_foreign *foreign, uint64_t shared_info) VP_MUST_CHECK;
void vp_xen_foreign_free(struct vp_xen_foreign *foreign);
/* Reads guest physical memory. False if not all of it is available. Mappings for small reads are
 * kept for a second at most. */
bool vp_xen_foreign_read(struct vp_xen_foreign *foreign, uint64_t address, void *bytes,
			 size_t size) VP_MUST_CHECK;
/* Says of each of these pages whether it is there (1). */
void vp_xen_foreign_backed(struct vp_xen_foreign *foreign, uint64_t address, size_t pages,
			   unsigned char *ret);
/* Nothing is mapped any more: a domain whose pages are mapped cannot go. */
void vp_xen_foreign_drop(struct vp_xen_foreign *foreign);

#endif
