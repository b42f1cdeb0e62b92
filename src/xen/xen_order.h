/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Merges records of several buffers by time: each buffer is sorted, so runs are merged. */
#ifndef VP_XEN_XEN_ORDER_H
#define VP_XEN_XEN_ORDER_H

#include "base/vec.h"
#include "xen/trace.h"

/* Zero-initialized; reuse it for the next call. */
struct vp_xen_order {
	VP_VEC(uint32_t)
	indices; /* indices of records, earliest first; stable */
	VP_VEC(uint32_t) spare;
	VP_VEC(size_t) runs; /* start indices of runs in `indices` */
};

void vp_xen_order_find(struct vp_xen_order *order, const struct vp_xen_traced *records,
		       size_t count);
void vp_xen_order_deinit(struct vp_xen_order *order);

#endif
