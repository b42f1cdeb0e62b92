/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/hypervisor_choice.h"

#include "xen/xen_hypervisor.h"

const struct vp_hypervisor *vp_hypervisor_here(void)
{
	return vp_xen_is_dom0() ? vp_hypervisor_xen() : vp_hypervisor_kvm();
}
