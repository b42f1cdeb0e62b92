/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes counts of emulated events from the host-provided counters of threads. */
#ifndef VP_PRELOAD_SHIM_COUNTS_H
#define VP_PRELOAD_SHIM_COUNTS_H

#include "counters/counters_lent.h"
#include "preload/sampling.h"
#include "protocol/lent.h"

/* State of a source at a time. */
struct vp_shim_reading {
	const struct vp_shim_source *source;
	struct vp_counters_lent_state state;
	uint64_t
	    children[VP_LENT_EVENTS]; /* counts of the thread's children, not included in its own */
	uint32_t live;                /* number of live children */
	bool is_good;
};

/* The source of a thread, shared by its events; `inherits`: with its children. 0 or -errno. */
int vp_shim_source_get(pid_t tid, bool inherits, struct vp_shim_source **ret);
void vp_shim_source_put(struct vp_shim_source *source);
void vp_shim_reading_take(const struct vp_shim_source *source, struct vp_shim_reading *ret);
/* The event's count, with children if it inherits. */
uint64_t vp_shim_reading_value(const struct vp_shim_reading *reading,
			       const struct vp_shim_event *event);
/* Updates the counts of a group; also call it before any change. */
void vp_shim_update_counts(struct vp_shim_event *leader);

static inline bool vp_shim_is_kernels(const struct vp_shim_event *event)
{
	return !event->source;
}

#endif
