/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel and user probes as temporary tracepoints (Documentation/trace/kprobetrace.rst,
 * uprobetracer.rst). Their group is named after this process; the next run removes those of a
 * killed process.
 */
#ifndef VP_COLLECT_TRACEFS_DYNAMIC_EVENTS_H
#define VP_COLLECT_TRACEFS_DYNAMIC_EVENTS_H

#include "base/error.h"
#include "base/macros.h"

struct vp_dynamic_events;

/* `tracing`: path of tracefs; `kallsyms`: path of the kernel's symbol list. */
struct vp_dynamic_events *vp_dynamic_events_new(const char *tracing, const char *kallsyms);
/* Removes the probes; they must be closed. */
void vp_dynamic_events_free(struct vp_dynamic_events *events);
/*
 * Creates the event of a definition (collect/tracefs/probe_definition.h). *name: the kernel's name,
 * GROUP:EVENT; *shown: perf's name, "probe:FUNCTION"; both to be freed. Errors: a malformed
 * definition, or the kernel rejects it.
 */
struct vp_error *vp_dynamic_events_add(struct vp_dynamic_events *events, const char *definition,
				       char **name, char **shown) VP_MUST_CHECK;
/* Number of removed events of killed processes. */
unsigned vp_dynamic_events_leftover(const struct vp_dynamic_events *events);

#endif
