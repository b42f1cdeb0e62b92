/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linux's devices by which domains of Xen share pages and send events to each other. */
#ifndef VP_VCHAN_VCHAN_DEVICE_H
#define VP_VCHAN_VCHAN_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "vchan/vchan_pump.h"
#include "vchan/vchan_ring.h"

/* The only ioctl that a pump makes: IOCTL_EVTCHN_NOTIFY. */
#define VP_VCHAN_NOTIFY_REQUEST 0x44504UL

#define VP_VCHAN_EVTCHN "/dev/xen/evtchn"
#define VP_VCHAN_GNTALLOC "/dev/xen/gntalloc"
#define VP_VCHAN_GNTDEV "/dev/xen/gntdev"

/* Opens one of these. Errors: no rights; the module that makes it is to be loaded. */
struct vp_error *vp_vchan_device_open(const char *path, int *ret) VP_MUST_CHECK;

/* An event channel that a peer in that domain can bind. */
struct vp_error *vp_vchan_bell_offer(uint16_t domain, struct vp_vchan_bell *ret) VP_MUST_CHECK;
/* Binds one that is offered. *taken: it is not any more. */
struct vp_error *vp_vchan_bell_bind(uint16_t domain, uint32_t port, struct vp_vchan_bell *ret,
				    bool *taken) VP_MUST_CHECK;

/* New pages that the domain may map; `references` gets their numbers. They stay until this process
 * ends, and then the byte at `live` of the first is set to 0, and the bell rung (NULL: not). */
struct vp_error *vp_vchan_share(int gntalloc, uint16_t domain, uint32_t pages, uint32_t *references,
				char **ret) VP_MUST_CHECK;
struct vp_error *vp_vchan_share_page(int gntalloc, uint16_t domain, uint32_t live,
				     const struct vp_vchan_bell *bell, uint32_t *reference,
				     struct vp_vchan_page **ret) VP_MUST_CHECK;
/* The same of a peer's pages. */
struct vp_error *vp_vchan_map(int gntdev, uint16_t domain, uint32_t pages,
			      const uint32_t *references, bool may_write, char **ret) VP_MUST_CHECK;
struct vp_error *vp_vchan_map_page(int gntdev, uint16_t domain, uint32_t reference, uint32_t live,
				   const struct vp_vchan_bell *bell,
				   struct vp_vchan_page **ret) VP_MUST_CHECK;

#endif
