/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flight recorder's triggers on Xen. */
#ifndef VP_XEN_XEN_CONDITION_OPS_H
#define VP_XEN_XEN_CONDITION_OPS_H

#include "collect/programs/conditions.h"

const struct vp_condition_ops *vp_xen_condition_ops(void);

#endif
