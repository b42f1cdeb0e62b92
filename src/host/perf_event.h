/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf_event_open(2) for the events that schema/event.h names. */
#ifndef VP_HOST_PERF_EVENT_H
#define VP_HOST_PERF_EVENT_H

#include <linux/perf_event.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/event.h"

/* Attributes of the event with its scope, without sampling. */
struct perf_event_attr vp_perf_event_attr(const struct vp_event *event);
/*
 * Opens the event: a descriptor, or -1 with errno. `tid`, `pcpu` and `group` as for
 * perf_event_open(2). An event that would keep VMs from starting (vp_host_event_blocks_vms()) is
 * refused: EOPNOTSUPP.
 */
int vp_perf_event_open(struct perf_event_attr *attr, int tid, int pcpu, int group);
/* The reason why the event is refused, or NULL. */
struct vp_error *vp_perf_event_refuse(const char *name,
				      const struct perf_event_attr *attr) VP_MUST_CHECK;

/* Whether this host has a hardware counter for instructions. */
bool vp_perf_event_has_hardware(void);

#endif
