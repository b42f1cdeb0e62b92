/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of countable events: perf's, the hypervisor's and the guest kernel's. */
#ifndef VP_SCHEMA_EVENT_H
#define VP_SCHEMA_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/nearest.h"
#include "schema/interval.h"

struct vp_event {
	enum vp_event_source source;
	uint32_t index;   /* enum vp_interval_count or vp_guest_count; for a counter, its number */
	const char *unit; /* "" for a count, "ns" for a time */
	/* For a counter: fields of struct perf_event_attr. */
	uint32_t type;
	uint64_t config, config1, config2;
	/* The name can only be resolved on the machine itself: type and config are not set yet. */
	bool of_machine;
	const char
	    *machine_name; /* this machine's name for it, if different from the recipe's; or NULL */
	bool exclude_user, exclude_kernel, exclude_host, exclude_guest;
};

/*
 * Finds an event by name: a name of schema/interval.h; a perf event (with modifiers u, k, G and H
 * after a colon); rHEX, a raw code of the processor; or an event of this machine in perf's
 * notation, PMU/TERM,.../ (with modifiers) or SYSTEM:TRACEPOINT. False: unknown.
 */
bool vp_event_find(struct vp_slice name, struct vp_event *ret);
/* The error for an unknown event name, with spelling suggestions; the caller frees it. */
char *vp_event_unknown(struct vp_slice name);
/* Adds all names except machine-specific ones to the spelling suggestions. */
void vp_event_look_near(struct vp_nearest *nearest);
/* Calls `each` for every name, grouped by source, except rHEX and machine-specific ones. */
void vp_event_each(void (*each)(void *context, const char *name, const struct vp_event *event,
				const char *meaning),
		   void *context);
/* The perf event that counts the same for a task without a hypervisor; false: none. */
bool vp_event_native(enum vp_guest_count count, struct vp_event *ret);

#endif
