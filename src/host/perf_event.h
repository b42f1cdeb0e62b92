/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf_event_open(2) for the events that schema/event.h names. */
#ifndef VP_HOST_PERF_EVENT_H
#define VP_HOST_PERF_EVENT_H

#include <linux/perf_event.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/event.h"

/* The event and its scope; without sampling. */
struct perf_event_attr vp_perf_event_attr(const struct vp_event *event);
/* A file descriptor, or -1 with errno; `tid`, `pcpu` and `group` as perf_event_open(2) has them. An
 * event that would keep VMs from starting (vp_host_event_blocks_vms()) is not opened: EOPNOTSUPP.
 */
int vp_perf_event_open(struct perf_event_attr *attr, int tid, int pcpu, int group);
/* NULL, or why the event of that name is not opened. */
struct vp_error *vp_perf_event_refuse(const char *name,
				      const struct perf_event_attr *attr) VP_MUST_CHECK;

/* Whether this host counts instructions in hardware. */
bool vp_perf_event_has_hardware(void);

#endif
