/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's domains, as VMs. */
#ifndef VP_XEN_DOMAINS_H
#define VP_XEN_DOMAINS_H

#include "schema/vm.h"
#include "xen/library.h"

/* The first domain with a number >= `from` that is not being destroyed; false: none. */
bool vp_xen_domain_next(const struct vp_xen *xen, uint32_t from, struct vp_xen_domain *ret);
/* The domain of the VM; false: gone, or being destroyed. */
bool vp_xen_domain_of(const struct vp_xen *xen, const struct vp_vm *vm, struct vp_xen_domain *ret);
/* Adds domains that are not in `vms`; only domain `only`, unless UINT32_MAX. */
void vp_xen_domains_add(const struct vp_xen *xen, uint32_t only, bool at_start, vp_vms *vms);
/* Reads the pCPUs that vCPUs of running domains may use. */
void vp_xen_domains_read_placements(vp_vms *vms);

#endif
