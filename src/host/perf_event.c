/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/perf_event.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/host_rules.h"
#include "host/pmu.h"

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
	/* Even an event that is open only briefly blocks VMs: one that starts meanwhile would
	 * fail. */
	if (vp_host_event_blocks_vms(VP_SYSFS, attr)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_perf_event_open, attr, tid, pcpu, group, PERF_FLAG_FD_CLOEXEC);
}

struct vp_error *vp_perf_event_refuse(const char *name, const struct perf_event_attr *attr)
{
	return vp_host_event_blocks_vms(VP_SYSFS, attr)
		   ? vp_error_new("event '%s' is not opened: KVM passes the PMU to guests "
				  "(enable_mediated_pmu), and no VM could start while this event "
				  "counts guests; use cpu-clock, or '%s:h' for the host alone",
				  name, name)
		   : NULL;
}

bool vp_perf_event_has_hardware(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_HW_INSTRUCTIONS,
				       .exclude_kernel = 1};
	int fd = vp_perf_event_open(&attr, 0, -1, -1);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
