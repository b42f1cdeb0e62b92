/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/perf_event.h"

#include <sys/syscall.h>
#include <unistd.h>

struct perf_event_attr vp_perf_event_attr(const struct vp_event *event)
{
	return (struct perf_event_attr){
	    .size = sizeof(struct perf_event_attr),
	    .type = event->type,
	    .config = event->config,
	    .config1 = event->config1,
	    .config2 = event->config2,
	    .exclude_user = event->exclude_user,
	    .exclude_kernel = event->exclude_kernel,
	    .exclude_host = event->exclude_host,
	    .exclude_guest = event->exclude_guest,
	};
}

int vp_perf_event_open(struct perf_event_attr *attr, int tid, int pcpu, int group)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, pcpu, group, PERF_FLAG_FD_CLOEXEC);
}
