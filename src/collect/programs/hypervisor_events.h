/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events that a hypervisor traces of itself, as event classes; they are collected by its
 * accounting. */
#ifndef VP_COLLECT_PROGRAMS_HYPERVISOR_EVENTS_H
#define VP_COLLECT_PROGRAMS_HYPERVISOR_EVENTS_H

#include "schema/event_class.h"

struct vp_hypervisor_events;

struct vp_hypervisor_events_ops {
	const char *system; /* for SYSTEM:EVENT on the command line */
	/* Selects events by name (with wildcards) or by class. Errors: an unknown name. */
	struct vp_error *(*open)(const char *const *names, size_t n_names,
				 struct vp_hypervisor_events **ret);
	/* Adds the classes of the selected events after the existing ones. The first fields of each
	 * event are `pcpu`, and `vm` and `vcpu` (UINT32_MAX: none) of the current vCPU. */
	struct vp_error *(*define)(struct vp_hypervisor_events *events, vp_event_classes *classes);
	/* Records since the last call, sorted by time, valid until the next call. */
	struct vp_buffer *(*take)(struct vp_hypervisor_events *events);
	/* Number of events lost in the hypervisor's buffers. */
	uint64_t (*lost)(const struct vp_hypervisor_events *events);
	void (*free)(struct vp_hypervisor_events *events);
};

#endif
