/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intervals of vCPUs that a hypervisor's own trace counts, in place of BPF programs
 * (collect/programs/intervals_source.h). */
#ifndef VP_COLLECT_PROGRAMS_HYPERVISOR_INTERVALS_H
#define VP_COLLECT_PROGRAMS_HYPERVISOR_INTERVALS_H

#include "base/error.h"
#include "collect/programs/rings.h"
#include "schema/recipe.h"

struct vp_hypervisor_intervals;

struct vp_hypervisor_intervals_options {
	const struct vp_recipe *recipe; /* of vCPUs; must outlive the source */
	bool paravirtual;               /* also count what PV guests enter the hypervisor for */
	vp_records_fn take;             /* receives whole intervals of all vCPUs, sorted by time */
	void *context;
};

struct vp_hypervisor_intervals_ops {
	/* Errors: events that the hypervisor cannot count, no access to its trace. */
	struct vp_error *(*open)(const struct vp_hypervisor_intervals_options *options,
				 struct vp_hypervisor_intervals **ret);
	/* Starts counting at that time, CLOCK_MONOTONIC, ns. */
	struct vp_error *(*begin)(struct vp_hypervisor_intervals *intervals, uint64_t now);
	/* Passes on the intervals that ended; call at least every 0.1 s. */
	void (*drain)(struct vp_hypervisor_intervals *intervals);
	/* Ends the last interval of every vCPU. */
	void (*end)(struct vp_hypervisor_intervals *intervals);
	/* Number of intervals that were lost. */
	uint64_t (*lost)(const struct vp_hypervisor_intervals *intervals);
	/* A sentence about the recipe's events that are missing, or NULL; a new string. */
	char *(*missing)(const struct vp_recipe *recipe, bool paravirtual);
	void (*free)(struct vp_hypervisor_intervals *intervals);
};

#endif
