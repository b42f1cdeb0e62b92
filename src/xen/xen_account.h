/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vCPU accounting from Xen's trace (operations: collect/programs/account_source.h). */
#ifndef VP_XEN_XEN_ACCOUNT_H
#define VP_XEN_XEN_ACCOUNT_H

#include "collect/programs/account_source.h"
#include "schema/records.h"

const struct vp_account_ops *vp_xen_account_ops(void);
/* The vendor for exit reasons. */
enum vp_vendor vp_xen_vendor(void);

#endif
