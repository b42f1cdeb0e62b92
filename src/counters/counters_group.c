/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perf events of the calling thread as one group: all count, or none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "counters/counters_event.h"
#include "counters/page_read.h"
#include "counters/set.h"

/* read(2) of the leader. A single event has a shorter format, which is read twice as fast. */
struct group_reading {
	uint64_t n, enabled, running, values[VPERF_MAX_EVENTS];
};
struct single_reading {
	uint64_t value, enabled, running;
};

static int counters_group_explain(struct vperf_error *error, const struct vp_counters_event *event,
				  bool is_leader, int errnum)
{
	switch (errnum) {
	case EACCES:
	case EPERM:
		return vp_counters_fail(
		    error, VPERF_E_RIGHTS,
		    "this user has no permission to count '%s': see kernel.perf_event_paranoid%s",
		    event->name,
		    event->exclude_kernel ? "" : "; user space only, with ':u', is allowed");
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
	case ENXIO:
		return vp_counters_fail(error, VPERF_E_NO_COUNTER,
					"this machine has no counter for '%s'", event->name);
	case EINVAL:
		if (is_leader)
			return vp_counters_fail(error, VPERF_E_NO_COUNTER,
						"this machine cannot count '%s'", event->name);
		return vp_counters_fail(error, VPERF_E_TOO_MANY,
					"there is no counter left for '%s'", event->name);
	case ENOSPC:
		return vp_counters_fail(error, VPERF_E_TOO_MANY,
					"there is no counter left for '%s'", event->name);
	case ENOSYS:
		return vp_counters_fail(error, VPERF_E_NO_COUNTER,
					"this kernel has no perf events");
	default:
		return vp_counters_fail(error, VPERF_E_SYSTEM, "cannot open '%s': %s", event->name,
					strerror(errnum));
	}
}

static int counters_group_open_event(struct perf_event_attr *attr, int leader)
{
	return (int)syscall(SYS_perf_event_open, attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* arm64: tries 64-bit counters readable in user space, then the latter only, then neither
 * (Documentation/arm64/perf.rst). On other architectures config1 has another meaning. */
static int open_best(struct perf_event_attr *attr, int leader)
{
#ifdef __aarch64__
	static const uint64_t wishes[] = {3, 2};
	bool hardware = attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_RAW ||
			attr->type == PERF_TYPE_HW_CACHE;

	for (unsigned i = 0; hardware && !attr->sample_period && i < 2; i++) {
		attr->config1 = wishes[i];
		int fd = counters_group_open_event(attr, leader);
		if (fd >= 0)
			return fd;
	}
	attr->config1 = 0;
#endif
	return counters_group_open_event(attr, leader);
}

static struct perf_event_attr counters_group_attr_of(const struct vp_counters_event *event,
						     bool is_leader, bool is_alone)
{
	return (struct perf_event_attr){
	    .size = sizeof(struct perf_event_attr),
	    .type = event->type,
	    .config = event->config,
	    .disabled = is_leader,
	    /* pinned: counts all the time or fails, so counts are never scaled */
	    .pinned = is_leader,
	    .exclude_user = event->exclude_user,
	    .exclude_kernel = event->exclude_kernel,
	    .read_format = (is_alone ? 0 : PERF_FORMAT_GROUP) | PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
}

/* Directs the signal to this thread. vp_counters_group_start() enables it. */
static int direct_signal(int fd, int signal)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};

	return fcntl(fd, F_SETOWN_EX, &owner) || fcntl(fd, F_SETSIG, signal) ? -errno : 0;
}

int vp_counters_group_open(const struct vp_counters_event *events, unsigned n,
			   const struct vperf_options *options, struct vp_counters_group *ret,
			   struct vperf_error *error)
{
	ret->n = 0;
	ret->period = options->signal ? options->period : 0;
	ret->signal_event = options->event;
	for (unsigned i = 0; i < n; i++) {
		struct perf_event_attr attr = counters_group_attr_of(&events[i], i == 0, n == 1);
		bool signals = options->signal && options->event == i;
		if (signals) {
			attr.sample_period = options->period;
			attr.wakeup_events = 1;
		}
		ret->fds[i] = open_best(&attr, i ? ret->fds[0] : -1);
		int errnum = ret->fds[i] < 0 ? errno : 0;
		ret->pages[i] = NULL;
		ret->n += !errnum;
		if (!errnum && signals)
			errnum = -direct_signal(ret->fds[i], options->signal);
		if (errnum) {
			vp_counters_group_close(ret);
			return counters_group_explain(error, &events[i], i == 0, errnum);
		}
	}
	return VPERF_OK;
}

void vp_counters_group_close(struct vp_counters_group *group)
{
	for (unsigned i = group->n; i-- > 0;) {
		if (group->pages[i])
			munmap(group->pages[i], (size_t)getpagesize());
		close(group->fds[i]);
	}
	group->n = 0;
}

int vp_counters_group_enable(struct vp_counters_group *group, bool enable)
{
	unsigned long request = enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;

	if (ioctl(group->fds[0], request, PERF_IOC_FLAG_GROUP))
		return VPERF_E_SYSTEM;
	for (unsigned i = 0; i < group->n; i++)
		if (group->pages[i])
			group->signs[i] = vp_counters_page_sign(group->pages[i]);
	return VPERF_OK;
}

/* The first period begins now: reads that vp_counters_prefer_user() timed, and an earlier run, are
 * in no period and send no signal. */
static int start_periods(const struct vp_counters_group *group)
{
	int fd = group->fds[group->signal_event], flags = fcntl(fd, F_GETFL);

	return flags < 0 || ioctl(fd, PERF_EVENT_IOC_PERIOD, &group->period) ||
	       fcntl(fd, F_SETFL, flags | O_ASYNC);
}

int vp_counters_group_start(struct vp_counters_group *group)
{
	if (group->period && start_periods(group))
		return VPERF_E_SYSTEM;
	return vp_counters_group_enable(group, true);
}

static int call_single(const struct vp_counters_group *group, uint64_t *value)
{
	struct single_reading reading;
	ssize_t got = read(group->fds[0], &reading, sizeof(reading));

	if (got < 0)
		return VPERF_E_SYSTEM;
	if (got != sizeof(reading) || reading.enabled != reading.running)
		return VPERF_E_LOST;
	*value = reading.value;
	return VPERF_OK;
}

int vp_counters_group_call(const struct vp_counters_group *group, uint64_t *values)
{
	if (group->n == 1)
		return call_single(group, values);
	struct group_reading reading;
	ssize_t got = read(group->fds[0], &reading, sizeof(reading));

	if (got < 0)
		return VPERF_E_SYSTEM;
	/* perf returns no data for a pinned group without counters. */
	if (got < (ssize_t)(3 + group->n) * (ssize_t)sizeof(uint64_t) || reading.n != group->n ||
	    reading.enabled != reading.running)
		return VPERF_E_LOST;
	memcpy(values, reading.values, group->n * sizeof(*values));
	return VPERF_OK;
}

int vp_counters_group_user(const struct vp_counters_group *group, uint64_t *values)
{
	for (unsigned i = 0; i < group->n; i++)
		if (!vp_counters_page_read(group->pages[i], group->signs[i], group->signs[i],
					   &values[i]))
			return vp_counters_group_call(group, values);
	return VPERF_OK;
}
