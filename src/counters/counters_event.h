/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event names of perf and PAPI. */
#ifndef VP_COUNTERS_COUNTERS_EVENT_H
#define VP_COUNTERS_COUNTERS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum { VP_COUNTERS_NAME_SIZE = 48 };

struct vp_counters_event {
	char name[VP_COUNTERS_NAME_SIZE]; /* perf's name with modifiers, whatever name was given */
	uint32_t type;                    /* as in struct perf_event_attr */
	uint64_t config;
	bool exclude_user, exclude_kernel;
};

/* False: unknown name. */
bool vp_counters_event_find(const char *name, struct vp_counters_event *ret);
/* perf's names, terminated by NULL. */
const char *vp_counters_event_name(unsigned i);
/* Whether both count the same: a raw code of the processor may be that of a perf event. */
bool vp_counters_event_same(const struct vp_counters_event *one,
			    const struct vp_counters_event *other);

#endif
