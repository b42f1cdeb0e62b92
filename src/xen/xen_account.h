/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of every vCPU's time from Xen's trace (collect/programs/account_source.h has the
 * operations). */
#ifndef VP_XEN_XEN_ACCOUNT_H
#define VP_XEN_XEN_ACCOUNT_H

#include "collect/programs/account_source.h"
#include "schema/records.h"

const struct vp_account_ops *vp_xen_account_ops(void);
/* For the processor's exits. */
enum vp_vendor vp_xen_vendor(void);

#endif
