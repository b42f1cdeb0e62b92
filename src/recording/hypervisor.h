/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which hypervisor runs this host's VMs. */
#ifndef VP_RECORDING_HYPERVISOR_H
#define VP_RECORDING_HYPERVISOR_H

#include "collect/hypervisor.h"

const struct vp_hypervisor *vp_hypervisor_here(void);

#endif
