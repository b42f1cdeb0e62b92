/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel and user probes as tracepoints, for as long as this process needs them
 * (Documentation/trace/kprobetrace.rst, uprobetracer.rst). Their group has the name of the process;
 * the next run removes those of a killed one. */
#ifndef VP_COLLECT_TRACEFS_DYNAMIC_EVENTS_H
#define VP_COLLECT_TRACEFS_DYNAMIC_EVENTS_H

#include "base/error.h"
#include "base/macros.h"

struct vp_dynamic_events;

/* `tracing` is where tracefs is, `kallsyms` the kernel's list of symbols. */
struct vp_dynamic_events *vp_dynamic_events_new(const char *tracing, const char *kallsyms);
/* Removes them: whoever opened one has closed it. */
void vp_dynamic_events_free(struct vp_dynamic_events *events);
/*
 * Makes the event of a definition (collect/tracefs/probe_definition.h). *name is the kernel's,
 * GROUP:EVENT; *shown is what perf would have called it, "probe:FUNCTION"; both to be freed.
 * Errors: the definition is malformed, or the kernel rejects it.
 */
struct vp_error *vp_dynamic_events_add(struct vp_dynamic_events *events, const char *definition,
				       char **name, char **shown) VP_MUST_CHECK;
/* How many events of killed processes were removed. */
unsigned vp_dynamic_events_leftover(const struct vp_dynamic_events *events);

#endif
