/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of records of several buffers by time: each has its own in order, so runs are merged.
 */
#ifndef VP_XEN_XEN_ORDER_H
#define VP_XEN_XEN_ORDER_H

#include "base/vec.h"
#include "xen/trace.h"

/* All zeros at first; kept for the next time. */
struct vp_xen_order {
	VP_VEC(uint32_t)
	indices; /* of records: the earliest first; those of one time as they are */
	VP_VEC(uint32_t) spare;
	VP_VEC(size_t) runs; /* where they begin in `places` */
};

void vp_xen_order_find(struct vp_xen_order *order, const struct vp_xen_traced *records,
		       size_t count);
void vp_xen_order_deinit(struct vp_xen_order *order);

#endif
