/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vCPU accounting from Xen's trace (operations: collect/programs/account_source.h). */
#ifndef VP_XEN_XEN_ACCOUNT_H
#define VP_XEN_XEN_ACCOUNT_H

#include "collect/programs/account_source.h"
#include "schema/records.h"
#include "xen/library.h"
#include "xen/states.h"

const struct vp_account_ops *vp_xen_account_ops(void);
/* The vendor for exit reasons. */
enum vp_vendor vp_xen_vendor(void);

/* Starts the states of all vCPUs, as they are now. */
void vp_xen_seed_states(const struct vp_xen *xen, uint64_t now, struct vp_xen_states *states);
/* Sets which domains have a cap, which is not traced. */
void vp_xen_check_caps(const struct vp_xen *xen, struct vp_xen_states *states);

#endif
