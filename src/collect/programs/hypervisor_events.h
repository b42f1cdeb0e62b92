/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events that a hypervisor traces of itself, as event classes; they come by way of its account. */
#ifndef VP_COLLECT_PROGRAMS_HYPERVISOR_EVENTS_H
#define VP_COLLECT_PROGRAMS_HYPERVISOR_EVENTS_H

#include "schema/event_class.h"

struct vp_hypervisor_events;

struct vp_hypervisor_events_ops {
	const char *system; /* users write SYSTEM:EVENT */
	/* Of these names, each of an event (which may have wildcards) or of a class of events.
	 * Errors: there is none of that name. */
	struct vp_error *(*open)(const char *const *names, size_t n_names,
				 struct vp_hypervisor_events **ret);
	/* Adds the classes of what was chosen behind those that there are. Of each event the first
	 * fields are `pcpu`, and `vm` and `vcpu` (UINT32_MAX: none) of the vCPU that had it. */
	struct vp_error *(*define)(struct vp_hypervisor_events *events, vp_event_classes *classes);
	/* The records since the last call, in order of time, until the next. */
	struct vp_buffer *(*take)(struct vp_hypervisor_events *events);
	/* So many found no room with the hypervisor. */
	uint64_t (*lost)(const struct vp_hypervisor_events *events);
	void (*free)(struct vp_hypervisor_events *events);
};

#endif
