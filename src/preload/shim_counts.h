/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads whose lent counters are read, and what events make of them. */
#ifndef VP_PRELOAD_SHIM_COUNTS_H
#define VP_PRELOAD_SHIM_COUNTS_H

#include "counters/counters_lent.h"
#include "preload/sampling.h"
#include "protocol/lent.h"

/* Observable state of a source. */
struct vp_shim_reading {
	const struct vp_shim_source *source;
	struct vp_counters_lent_state state;
	uint64_t children[VP_LENT_EVENTS]; /* counts of the thread's children, in addition to it */
	uint32_t live;                     /* of those */
	bool is_good;
};

/* One for all events of a thread; `inherits`: with what it makes. 0, or -errno. */
int vp_shim_source_get(pid_t tid, bool inherits, struct vp_shim_source **ret);
void vp_shim_source_put(struct vp_shim_source *source);
void vp_shim_reading_take(const struct vp_shim_source *source, struct vp_shim_reading *ret);
/* Count of the event, with what is inherited, if it is. */
uint64_t vp_shim_reading_value(const struct vp_shim_reading *reading,
			       const struct vp_shim_event *event);
/* Brings a group up to date; before whatever changes it, too. */
void vp_shim_update_counts(struct vp_shim_event *leader);

static inline bool vp_shim_is_kernels(const struct vp_shim_event *event)
{
	return !event->source;
}

#endif
