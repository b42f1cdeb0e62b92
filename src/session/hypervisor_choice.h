/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects the hypervisor of this host's VMs. */
#ifndef VP_SESSION_HYPERVISOR_CHOICE_H
#define VP_SESSION_HYPERVISOR_CHOICE_H

#include "collect/programs/hypervisor.h"

const struct vp_hypervisor *vp_hypervisor_here(void);

#endif
