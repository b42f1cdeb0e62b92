/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Named events of this machine's PMUs, from sysfs (perf_event_open(2),
 * "Dynamic PMUs", and Documentation/ABI/testing/sysfs-bus-event_source-devices-*): those of PMUs,
 * spelled PMU/EVENT/ or PMU/TERM=VALUE,.../, and tracepoints, SYSTEM:NAME.
 */
#ifndef VP_HOST_PMU_H
#define VP_HOST_PMU_H

#include "base/error.h"
#include "base/macros.h"
#include "schema/recipe.h"

#define VP_SYSFS "/sys"

/* Sets type and config of a machine-specific event (vp_event.of_machine); other events are not
 * changed. */
struct vp_error *vp_pmu_resolve(const char *sysfs, const char *name,
				struct vp_event *event) VP_MUST_CHECK;
/* The same for all events of a recipe and the event that ends intervals; errors have the
 * position. */
struct vp_error *vp_pmu_resolve_recipe(const char *sysfs, const char *label,
				       struct vp_recipe *recipe) VP_MUST_CHECK;
/* Calls `each` for the named events of this machine's PMUs, as PMU/EVENT/, sorted. */
void vp_pmu_each(const char *sysfs, void (*each)(void *context, const char *name), void *context);

#endif
