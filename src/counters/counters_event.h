/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of events, as perf and PAPI have them. */
#ifndef VP_COUNTERS_COUNTERS_EVENT_H
#define VP_COUNTERS_COUNTERS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum { VP_COUNTERS_NAME_SIZE = 48 };

struct vp_counters_event {
	char name[VP_COUNTERS_NAME_SIZE]; /* perf's, with its modifiers: whatever it was called */
	uint32_t type;                    /* as in struct perf_event_attr */
	uint64_t config;
	bool exclude_user, exclude_kernel;
};

/* False: no event is called so. */
bool vp_counters_event_find(const char *name, struct vp_counters_event *ret);
/* perf's names, ended by NULL. */
const char *vp_counters_event_name(unsigned i);
/* Whether these count the same: a processor's own code may be that of one of perf's events. */
bool vp_counters_event_same(const struct vp_counters_event *one,
			    const struct vp_counters_event *other);

#endif
