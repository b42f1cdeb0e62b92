/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf's counters of a recipe: on each pCPU all of them, and what closes intervals. */
#ifndef VP_COLLECT_PROGRAMS_COUNTER_SETS_H
#define VP_COLLECT_PROGRAMS_COUNTER_SETS_H

#include "base/error.h"
#include "base/macros.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "schema/recipe.h"

struct vp_counter {
	int fd, pcpu;
	uint32_t number; /* of the recipe's counters */
	uint32_t set;    /* from 1; 0: it is counted all the time */
	bool leads;      /* the set's group: what is switched on and off */
};

struct vp_counters {
	VP_VEC(struct vp_counter) open;
	VP_VEC(char *) missing; /* names of events that this machine cannot count */
	bool multiplexed; /* the sets are multiplexed: the first one is enabled, the others are not
			   */
};

/* Opens every counter of the recipe on every pCPU, and starts counting. Counters of a set are one
 * perf event group: scheduled together or not at all. If the sets do not all fit with the trigger
 * and the permanent counters, only the first one is enabled: the others are for
 * vp_multiplex_start(). Events that the machine lacks are noted in `missing`. Errors: a set that
 * does not even fit alone, no permission. */
struct vp_error *vp_counters_open(const struct vp_recipe *recipe, const struct vp_pcpus *pcpus,
				  struct vp_counters *ret) VP_MUST_CHECK;
/*
 * The same on one more pCPU, or one that was offline: what was open there counts no more, and is
 * closed. Errors, too: the sets are multiplexed, or do not fit at once.
 */
struct vp_error *vp_counters_add(const struct vp_recipe *recipe, int pcpu,
				 struct vp_counters *counters) VP_MUST_CHECK;
/* Closes all counters. */
void vp_counters_close(struct vp_counters *counters);
/* The descriptor of the set's group on a pCPU, or -1: this machine has none of its events. */
int vp_counters_leader(const struct vp_counters *counters, uint32_t set, int pcpu);

/*
 * Opens what closes the intervals, every `period` events or ns, switched off: a sampling event of a
 * thread (and, with `inherit`, of all that it starts), or with tid -1 of a pCPU; pcpu -1: on
 * whichever pCPU the thread is.
 */
struct vp_error *vp_counter_trigger(const struct vp_recipe *recipe, uint64_t period, int tid,
				    int pcpu, bool inherit, int *fd) VP_MUST_CHECK;

#endif
