/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf counters of a recipe on each pCPU, and the event that ends intervals. */
#ifndef VP_COLLECT_PROGRAMS_COUNTER_SETS_H
#define VP_COLLECT_PROGRAMS_COUNTER_SETS_H

#include "base/error.h"
#include "base/macros.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "schema/recipe.h"

struct vp_counter {
	int fd, pcpu;
	uint32_t number; /* index among the recipe's counters */
	uint32_t set;    /* from 1; 0: counted all the time */
	bool leads;      /* leader of the set's group: enabled and disabled */
};

struct vp_counters {
	VP_VEC(struct vp_counter) open;
	VP_VEC(char *) missing; /* names of events that this machine cannot count */
	bool multiplexed;       /* the sets are multiplexed: only the first one is enabled */
};

/*
 * Opens every counter of the recipe on every pCPU, and starts counting. The counters of a set are
 * one perf event group: scheduled together or not at all. If the sets do not all fit together with
 * the interval's event and the permanent counters, only the first one is enabled; the others are
 * for vp_multiplex_start(). Events that the machine lacks are listed in `missing`. Errors: a set
 * that does not fit even alone, no permission.
 */
struct vp_error *vp_counters_open(const struct vp_recipe *recipe, const struct vp_pcpus *pcpus,
				  struct vp_counters *ret) VP_MUST_CHECK;
/* The same for one more pCPU, or one that was offline; counters that were open on it have stopped
 * and are closed. Errors: also if the sets are multiplexed, or do not fit together. */
struct vp_error *vp_counters_add(const struct vp_recipe *recipe, int pcpu,
				 struct vp_counters *counters) VP_MUST_CHECK;
/* Closes all counters. */
void vp_counters_close(struct vp_counters *counters);
/* Descriptor of the set's group leader on a pCPU, or -1: this machine has none of its events. */
int vp_counters_leader(const struct vp_counters *counters, uint32_t set, int pcpu);

/* Opens the event that ends intervals, every `period` events or ns, disabled: for a thread (and
 * with `inherit` its descendants), or with tid -1 for a pCPU; pcpu -1: any pCPU. */
struct vp_error *vp_counter_trigger(const struct vp_recipe *recipe, uint64_t period, int tid,
				    int pcpu, bool inherit, int *fd) VP_MUST_CHECK;

#endif
