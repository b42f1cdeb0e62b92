/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records any events of Xen's trace buffers (collect/programs/hypervisor_events.h). */
#ifndef VP_XEN_XEN_EVENTS_H
#define VP_XEN_XEN_EVENTS_H

#include "collect/programs/hypervisor_events.h"
#include "xen/buffers.h"

const struct vp_hypervisor_events_ops *vp_xen_events_ops(void);

/* Events to enable in addition to others' (VP_XEN_TRACE_*). */
uint32_t vp_xen_events_mask(const struct vp_hypervisor_events *events);
/* Makes a record of the event, if it is selected; UINT32_MAX: no running vCPU. */
void vp_xen_events_add(struct vp_hypervisor_events *events, const struct vp_xen_traced *traced,
		       uint32_t vm, uint32_t vcpu);
/* Number of events lost so far. */
void vp_xen_events_note_lost(struct vp_hypervisor_events *events, uint64_t lost);

#endif
