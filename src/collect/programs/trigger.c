/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/trigger.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "base/pcpus.h"
#include "base/stagger.h"
#include "host/host_rules.h"
#include "host/perf_event.h"
#include "host/pmu.h"
#include "schema/event.h"
#include "schema/interval.h"

enum { MIN_CLOCK_NS = 10000 };

static struct vp_error *unknown_trigger(const char *name)
{
	VP_AUTO_FREE char *sentence = vp_event_unknown((struct vp_slice){name, strlen(name)});

	return vp_error_usage("%s", sentence);
}

static struct vp_error *trigger_attr_of(const char *name, struct perf_event_attr *attr)
{
	struct vp_event event;

	if (!vp_event_find((struct vp_slice){name, strlen(name)}, &event) ||
	    event.source != VP_FROM_COUNTER)
		return unknown_trigger(name);
	VP_TRY(vp_pmu_resolve(VP_SYSFS, name, &event));
	if (event.type == PERF_TYPE_TRACEPOINT)
		return vp_error_usage("'%s' is a tracepoint: 'vperf stat' can count it, but 'vperf "
				      "record' cannot sample on it",
				      name);
	*attr = vp_perf_event_attr(&event);
	attr->disabled = 1;
	return NULL;
}

/* With a modifier, some ticks are not samples. */
static bool ticks_always(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		attr->config == PERF_COUNT_SW_TASK_CLOCK) &&
	       !(attr->exclude_user || attr->exclude_kernel || attr->exclude_host ||
		 attr->exclude_guest);
}

/*
 * Whether the event counts whenever the pCPU is not idle: then samples in frequency mode have the
 * requested distance once the kernel has found the period. Until then, and after idle times, they
 * are too dense, so each one represents the time since the previous one.
 */
static bool counts_busy_time(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE &&
	       (attr->config == PERF_COUNT_HW_CPU_CYCLES ||
		attr->config == PERF_COUNT_HW_REF_CPU_CYCLES ||
		attr->config == PERF_COUNT_HW_BUS_CYCLES) &&
	       !(attr->exclude_user || attr->exclude_kernel || attr->exclude_host ||
		 attr->exclude_guest);
}

/* A fixed number of events, or events that are not times, are weights themselves. */
static enum vp_weighting weighting_of(const struct vp_trigger_options *options, bool by_time,
				      const struct perf_event_attr *attr)
{
	if (by_time)
		return VP_WEIGHTING_TICKS;
	return counts_busy_time(attr) && !options->period ? VP_WEIGHTING_TIME : VP_WEIGHTING_EVENTS;
}

bool vp_trigger_has_hardware(void)
{
	const struct vp_event cycles = {.type = PERF_TYPE_HARDWARE,
					.config = PERF_COUNT_HW_CPU_CYCLES};
	struct perf_event_attr attr = vp_perf_event_attr(&cycles);

	attr.sample_period = 1000000000;
	attr.disabled = 1;
	VP_AUTO_CLOSE int fd = vp_perf_event_open(&attr, -1, 0, -1);

	return fd >= 0;
}

/* The clock has a period in ns; for a counter the kernel adjusts the period to the frequency. */
static void set_rate(const struct vp_trigger_options *options, struct perf_event_attr *attr,
		     struct vp_trigger *trigger)
{
	uint64_t frequency = trigger->frequency ? trigger->frequency : VP_USUAL_FREQUENCY;

	trigger->period_ns =
	    trigger->by_time && options->period ? options->period : 1000000000 / frequency;
	if (trigger->by_time) {
		attr->sample_period = trigger->period_ns;
	} else if (options->period) {
		attr->sample_period = options->period;
	} else {
		attr->freq = 1;
		attr->sample_freq = frequency;
	}
}

/* The kernel's limit of samples per second, or 0: unknown. */
static uint64_t max_frequency(void)
{
	struct vp_buffer text = {0};
	struct vp_error *error =
	    vp_file_read("/proc/sys/kernel/perf_event_max_sample_rate", 4096, &text);
	uint64_t frequency = error ? 0 : strtoull(vp_buffer_text(&text), NULL, 10);

	vp_error_free(error);
	vp_buffer_deinit(&text);
	return frequency;
}

/* The kernel lowers its limit when interrupts take long. */
static uint64_t frequency_of(const struct vp_trigger_options *options)
{
	uint64_t most = max_frequency();

	if (options->frequency || options->period)
		return options->frequency;
	return most && most < VP_USUAL_FREQUENCY ? most : VP_USUAL_FREQUENCY;
}

static struct vp_error *check_rate(const struct vp_trigger_options *options, bool by_time,
				   uint64_t period_ns)
{
	uint64_t most = max_frequency();

	if (most && options->frequency > most)
		return vp_error_new("cannot sample at %" PRIu64 " Hz: the kernel allows %" PRIu64
				    " (kernel.perf_event_max_sample_rate)",
				    options->frequency, most);
	/* the kernel rounds shorter periods up to 10 us (perf_swevent_start_hrtimer()) */
	if (by_time && period_ns < MIN_CLOCK_NS)
		return vp_error_new("cannot sample every %" PRIu64
				    " ns: the shortest period is %d ns",
				    period_ns, MIN_CLOCK_NS);
	return NULL;
}

static struct vp_error *trigger_open_on(const struct vp_trigger *trigger, int pcpu, int *fd)
{
	*fd = vp_perf_event_open(trigger->attr, -1, pcpu, -1);
	if (*fd >= 0)
		return NULL;
	int errnum = errno;
	const char *lockdown = vp_host_lockdown(VP_SYSFS);
	if ((errnum == EACCES || errnum == EPERM) && lockdown && !geteuid())
		return vp_error_new("cannot open event '%s': this kernel is locked down (%s)",
				    trigger->name, lockdown);
	if (errnum == EACCES || errnum == EPERM)
		return vp_error_errno(errnum,
				      "cannot open event '%s' on pCPU %d (root or "
				      "CAP_PERFMON is needed)",
				      trigger->name, pcpu);
	if (errnum == ENOENT || errnum == EOPNOTSUPP || errnum == EINVAL)
		return vp_error_new(
		    "cannot sample on event '%s' on this machine; -e cpu-clock works everywhere",
		    trigger->name);
	return vp_error_errno(errnum, "cannot open event '%s' on pCPU %d", trigger->name, pcpu);
}

/* pCPUs in order of first appearance. */
static size_t trigger_index_of(struct vp_trigger *trigger, int pcpu)
{
	size_t index = 0;

	while (index < trigger->pcpus.count && trigger->pcpus.at[index] != pcpu)
		index++;
	if (index == trigger->pcpus.count) {
		vp_vec_push(&trigger->pcpus, pcpu);
		vp_vec_push(&trigger->fds, -1);
		vp_vec_push(&trigger->enabled_at, 0);
	}
	return index;
}

struct vp_error *vp_trigger_add(struct vp_trigger *trigger, int pcpu, size_t *ret)
{
	int fd;

	VP_TRY(trigger_open_on(trigger, pcpu, &fd));
	*ret = trigger_index_of(trigger, pcpu);
	int *before = &trigger->fds.at[*ret];
	if (*before >= 0)
		close(*before);
	*before = fd;
	return NULL;
}

static struct vp_error *open_all(const struct vp_pcpus *pcpus, struct vp_trigger *trigger)
{
	size_t index;

	for (size_t i = 0; i < pcpus->count; i++)
		VP_TRY(vp_trigger_add(trigger, pcpus->at[i], &index));
	return NULL;
}

static struct vp_error *open_online(struct vp_trigger *trigger)
{
	struct vp_pcpus pcpus = {0};
	struct vp_error *error = vp_pcpus_online(&pcpus);

	if (!error)
		error = open_all(&pcpus, trigger);
	vp_vec_deinit(&pcpus);
	return error;
}

struct vp_error *vp_trigger_open(const struct vp_trigger_options *options, struct vp_trigger *ret)
{
	struct perf_event_attr attr;
	const char *event = options->event;

	*ret =
	    (struct vp_trigger){.gives_way_to_vms = !event && vp_host_has_mediated_pmu(VP_SYSFS)};
	if (!event)
		event = vp_trigger_has_hardware() ? "cycles" : "cpu-clock";
	VP_TRY(trigger_attr_of(event, &attr));
	VP_TRY(vp_perf_event_refuse(event, &attr));
	ret->by_time = ticks_always(&attr);
	ret->stagger = options->stagger && ret->by_time;
	ret->weighting = weighting_of(options, ret->by_time, &attr);
	ret->events = ret->weighting == VP_WEIGHTING_EVENTS ? options->period : 0;
	ret->frequency = frequency_of(options);
	set_rate(options, &attr, ret);
	VP_TRY(check_rate(options, ret->by_time, ret->period_ns));
	ret->name = vp_strdup(event);
	ret->attr = vp_alloc(sizeof(attr));
	*ret->attr = attr;
	bool chosen = options->pcpus && options->pcpus->count;
	struct vp_error *error = chosen ? open_all(options->pcpus, ret) : open_online(ret);
	if (error)
		vp_trigger_close(ret);
	return error;
}

void vp_trigger_close(struct vp_trigger *trigger)
{
	vp_vec_each (&trigger->fds, fd)
		close(*fd);
	vp_vec_deinit(&trigger->fds);
	vp_vec_deinit(&trigger->pcpus);
	vp_vec_deinit(&trigger->enabled_at);
	free(trigger->name);
	free(trigger->attr);
	trigger->name = NULL;
	trigger->attr = NULL;
}

static struct vp_error *enable(struct vp_trigger *trigger, size_t index, bool on)
{
	trigger->enabled_at.at[index] = vp_clock_monotonic();
	return ioctl(trigger->fds.at[index], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0)
		   ? vp_error_errno(errno, "cannot %s event '%s'", on ? "enable" : "disable",
				    trigger->name)
		   : NULL;
}

/* Waits until the pCPU's tick is due: ticks are spread over the period, starting at this host's
 * offset. */
static void wait_for_offset(const struct vp_trigger *trigger, size_t index)
{
	uint64_t period = trigger->period_ns;
	uint64_t offset = vp_stagger_here("samples", period) +
			  (uint64_t)((double)period * (double)index / (double)trigger->fds.count);

	vp_sleep_ns(vp_stagger_wait(vp_clock_read().realtime, period, offset));
}

struct vp_error *vp_trigger_enable(struct vp_trigger *trigger, bool on)
{
	for (size_t index = 0; index < trigger->fds.count; index++) {
		if (on && trigger->stagger)
			wait_for_offset(trigger, index);
		VP_TRY(enable(trigger, index, on));
	}
	return NULL;
}

struct vp_error *vp_trigger_enable_one(struct vp_trigger *trigger, size_t index)
{
	return enable(trigger, index, true);
}

uint64_t vp_trigger_count(const struct vp_trigger *trigger)
{
	uint64_t sum = 0, reading[4]; /* the count is the first field */

	vp_vec_each (&trigger->fds, fd)
		if (vp_read(*fd, reading, sizeof(reading)) >= (ssize_t)sizeof(*reading))
			sum += reading[0];
	return sum;
}
