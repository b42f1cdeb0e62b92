/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of what can be counted: perf's events, the hypervisor's, the guest kernel's. */
#ifndef VP_SCHEMA_EVENT_H
#define VP_SCHEMA_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/nearest.h"
#include "schema/interval.h"

struct vp_event {
	enum vp_event_source source;
	uint32_t index;   /* enum vp_interval_count or vp_guest_count; of a counter, its number */
	const char *unit; /* "" for a plain count, "ns" for a time */
	/* Attributes of a counter, as in struct perf_event_attr. */
	uint32_t type;
	uint64_t config, config1, config2;
	/* Only the machine can resolve the name: type and config are not set yet. */
	bool of_machine;
	const char *machine_name; /* what the machine calls it, if the recipe does not; or NULL */
	bool exclude_user, exclude_kernel, exclude_host, exclude_guest;
};

/* Finds an event by its name: a name of schema/interval.h; a perf event name (with modifiers u, k,
 * G and H after a colon); rHEX, the processor's own code; or one of this machine, in perf's
 * notation: PMU/TERM,.../ (modifiers after it) or SYSTEM:TRACEPOINT. False: not found. */
bool vp_event_find(struct vp_slice name, struct vp_event *ret);
/* The error in an unknown event name, with the closest names; the caller frees it. */
char *vp_event_unknown(struct vp_slice name);
/* Looks at every name that is no machine's own. */
void vp_event_look_near(struct vp_nearest *nearest);
/* Calls `each` for every name but rHEX and those of a machine, by source. */
void vp_event_each(void (*each)(void *context, const char *name, const struct vp_event *event,
				const char *meaning),
		   void *context);
/* The counter that counts the same of a task where there is no hypervisor; false: none does. */
bool vp_event_native(enum vp_guest_count count, struct vp_event *ret);

#endif
