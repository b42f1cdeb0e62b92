/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf_event_open(2) for the events that schema/event.h names. */
#ifndef VP_COLLECT_PERF_EVENT_H
#define VP_COLLECT_PERF_EVENT_H

#include <linux/perf_event.h>

#include "schema/event.h"

/* What is counted, and where; nothing is said about sampling. */
struct perf_event_attr vp_perf_event_attr(const struct vp_event *event);
/* A file descriptor, or -1 with errno; `tid`, `pcpu` and `group` as perf_event_open(2) has them. */
int vp_perf_event_open(struct perf_event_attr *attr, int tid, int pcpu, int group);

#endif
