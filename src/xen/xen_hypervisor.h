/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen as a hypervisor (collect/programs/hypervisor.h): a domain is a VM, dom0 too. */
#ifndef VP_XEN_XEN_HYPERVISOR_H
#define VP_XEN_XEN_HYPERVISOR_H

#include "collect/programs/hypervisor.h"

const struct vp_hypervisor *vp_hypervisor_xen(void);
/* Whether this host is a Xen's dom0. */
bool vp_xen_is_dom0(void);

#endif
