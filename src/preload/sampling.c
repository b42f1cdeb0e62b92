/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "preload/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "protocol/lent.h"

_Static_assert((int)VP_LENT_EVENTS == (int)VPERF_MAX_EVENTS, "all that is lent is read at once");

bool vp_shim_can_sample(const struct perf_event_attr *attr, pid_t pid)
{
	bool own = !pid || pid == gettid();

	return !attr->sample_period ||
	       (own && !attr->freq && !(attr->sample_type & ~(uint64_t)PERF_SAMPLE_IP) &&
		!attr->inherit && !attr->enable_on_exec && !attr->watermark && !attr->mmap &&
		!attr->comm && !attr->task && !attr->write_backward);
}

static bool read_lent(void *context, uint64_t *values)
{
	struct vp_shim_event *event = context;
	struct vp_counters_lent_state state;

	if (vp_counters_lent_read_state(event->source->lent, &state))
		return false;
	memcpy(values, state.counts, sizeof(state.counts));
	memcpy(event->sampling.shown, state.counts, sizeof(state.counts));
	return true;
}

/* No lock: signals are blocked while the lock is held. */
static void sampling_take_off(void *context, const uint64_t *values)
{
	const struct vp_shim_event *sampled = context;

	for (struct vp_shim_event *event = sampled->source->events; event;
	     event = event->next_of_source)
		event->since += values[event->index];
}

static void count_until(struct vp_shim_event *event, const uint64_t *shown)
{
	if (event->is_on)
		event->count += shown[event->index] - event->since;
	event->since = shown[event->index];
}

/* The other members stop counting with their leader. */
static void disable(struct vp_shim_event *event, const uint64_t *shown)
{
	count_until(event, shown);
	if (event->leader == event)
		for (struct vp_shim_event *other = event->next; other; other = other->next)
			count_until(other, shown);
	event->is_on = false;
	ioctl(event->companion, PERF_EVENT_IOC_DISABLE, 0);
}

static uint64_t interrupted_ip(const ucontext_t *interrupted)
{
#if defined(__x86_64__)
	return (uint64_t)interrupted->uc_mcontext.gregs[REG_RIP];
#else
	return interrupted->uc_mcontext.pc;
#endif
}

/* Drops a sample that does not fit, like the kernel. All records have one size, which divides
 * the buffer's. */
static void sampling_put_sample(struct vp_shim_sampling *sampling)
{
	struct {
		struct perf_event_header header;
		uint64_t ip;
	} record = {{.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER}, sampling->ip};
	size_t size = sampling->ring_size - (size_t)getpagesize();

	record.header.size = sampling->has_ip ? sizeof(record) : sizeof(record.header);
	if (!sampling->ring || !size)
		return;
	uint64_t tail = __atomic_load_n(&sampling->ring->data_tail, __ATOMIC_ACQUIRE);
	if (sampling->head - tail + record.header.size > size)
		return;
	char *bytes = (char *)sampling->ring + getpagesize();
	memcpy(bytes + sampling->head % size, &record, record.header.size);
	sampling->head += record.header.size;
	__atomic_store_n(&sampling->ring->data_head, sampling->head, __ATOMIC_RELEASE);
}

/* Signals pending at the end report the last known location. */
static bool sampling_report(void *context, const void *interrupted)
{
	struct vp_shim_event *event = context;
	struct vp_shim_sampling *sampling = &event->sampling;

	if (interrupted)
		sampling->ip = interrupted_ip(interrupted);
	sampling_put_sample(sampling);
	if (!sampling->limit || --sampling->limit)
		return true;
	if (sampling->runs)
		disable(event, sampling->shown);
	event->is_on = sampling->runs = false;
	return false;
}

/* Needs signals, which are blocked under the lock: called without it. */
static int open_overflow(struct vp_shim_event *event)
{
	static const struct vp_counters_overflow_ops ops = {read_lent, sampling_take_off,
							    sampling_report};
	struct vp_shim_sampling *sampling = &event->sampling;
	const struct vperf_options options = {.size = sizeof(options),
					      .signal = sampling->signal,
					      .event = event->index,
					      .period = sampling->period};

	vp_counters_overflow_close(sampling->overflow);
	sampling->overflow = NULL;
	sampling->was_on = false;
	int status = vp_counters_overflow_open(&ops, event, VP_LENT_EVENTS, &options,
					       &sampling->overflow, NULL);
	if (status)
		return status == VPERF_E_RIGHTS ? -EPERM : -EINVAL;
	vp_counters_overflow_set_fd(sampling->overflow, event->fd);
	return 0;
}

int vp_shim_sampling_follow(struct vp_shim_event *event)
{
	struct vp_shim_sampling *sampling = &event->sampling;
	bool shall_run = event->is_on && event->leader->is_on;

	if (!sampling->overflow || shall_run == sampling->runs)
		return 0;
	sampling->runs = shall_run;
	if (!shall_run) {
		vp_counters_overflow_stop(sampling->overflow, event->since);
		return 0;
	}
	int status = sampling->was_on
			 ? vp_counters_overflow_resume(sampling->overflow, event->since)
			 : vp_counters_overflow_start(sampling->overflow, event->since);
	sampling->was_on = true;
	return status ? -EINVAL : 0;
}

void vp_shim_sampling_close(struct vp_shim_sampling *sampling)
{
	vp_counters_overflow_close(sampling->overflow);
	if (sampling->ring)
		munmap(sampling->ring, sampling->ring_size);
}

static int set_signal(struct vp_shim_event *event, int signal)
{
	if (signal <= 0 || signal > SIGRTMAX || event->sampling.runs)
		return -EINVAL;
	event->sampling.signal = signal;
	return event->sampling.is_async ? open_overflow(event) : 0;
}

static int set_flags(struct vp_shim_event *event, unsigned long flags)
{
	struct vp_shim_sampling *sampling = &event->sampling;

	sampling->is_async = flags & O_ASYNC;
	return sampling->is_async && sampling->signal && !sampling->overflow ? open_overflow(event)
									     : 0;
}

int vp_shim_sampling_fcntl(struct vp_shim_event *event, int command, unsigned long argument)
{
	const struct f_owner_ex *owner = (const void *)argument; // NOLINT: an address
	struct vp_shim_sampling *sampling = &event->sampling;

	switch (command) {
	case F_GETFL:
		return O_RDWR | (sampling->is_async ? O_ASYNC : 0);
	case F_SETFL:
		return set_flags(event, argument);
	case F_GETSIG:
		return sampling->signal;
	case F_SETSIG:
		return set_signal(event, (int)argument);
	case F_SETOWN:
		return (pid_t)argument == gettid() ? 0 : -EINVAL;
	case F_SETOWN_EX:
		return owner->type == F_OWNER_TID && owner->pid == gettid() ? 0 : -EINVAL;
	default:
		return -ENOSYS;
	}
}

/* The program may unmap its mapping at any time. */
void *vp_shim_sampling_map(struct vp_shim_sampling *sampling, void *address, size_t size, int flags)
{
	int fd = memfd_create("perf_event", MFD_CLOEXEC);
	void *mapped = MAP_FAILED, *view = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (view != MAP_FAILED)
		mapped = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
	if (mapped != MAP_FAILED) {
		if (sampling->ring)
			munmap(sampling->ring, sampling->ring_size);
		sampling->ring = view;
		sampling->ring_size = size;
		sampling->head = 0;
	} else if (view != MAP_FAILED) {
		munmap(view, size);
	}
	if (fd >= 0)
		close(fd);
	return mapped;
}
