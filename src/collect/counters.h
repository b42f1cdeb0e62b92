/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf's counters of a recipe: on each pCPU all of them, and what closes intervals. */
#ifndef VP_COLLECT_COUNTERS_H
#define VP_COLLECT_COUNTERS_H

#include "base/error.h"
#include "base/vec.h"
#include "collect/pcpus.h"
#include "schema/recipe.h"

struct vp_counter {
	int fd, pcpu;
	uint32_t number; /* enum of the recipe's counters */
};

struct vp_counters {
	VP_VEC(struct vp_counter) open;
	VP_VEC(char *) missing; /* names of events that this machine cannot count */
	char *rotation;         /* file in sysfs whose value was changed … */
	char *rotation_before;  /* … and what it was */
};

/*
 * Opens every counter of the recipe on every pCPU, counting from now on. Counters of a set are one
 * group of perf's: on the processor together or not at all. Where the sets do not fit together the
 * kernel lets them take turns, in sub-intervals if those are whole milliseconds, else by the
 * millisecond. An event that the machine does not have is noted in `missing`. Errors: a set that
 * does not fit, no permission.
 */
struct vp_error *vp_counters_open(const struct vp_recipe *recipe, const struct vp_pcpus *pcpus,
				  struct vp_counters *ret) VP_MUST_CHECK;
void vp_counters_close(struct vp_counters *counters);

/*
 * Opens what closes the intervals, switched off: a sampling event of a thread (and, with `inherit`,
 * of all that it starts), or with tid -1 of a pCPU; pcpu -1: on whichever pCPU the thread is.
 */
struct vp_error *vp_counter_trigger(const struct vp_recipe *recipe, int tid, int pcpu, bool inherit,
				    int *fd) VP_MUST_CHECK;

#endif
