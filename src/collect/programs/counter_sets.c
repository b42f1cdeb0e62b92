/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/counter_sets.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/alloc.h"
#include "base/io.h"
#include "host/host_rules.h"
#include "host/perf_event.h"
#include "schema/event.h"
#include "schema/interval.h"

static bool counter_sets_is_missing(int errnum)
{
	return errnum == ENOENT || errnum == EOPNOTSUPP || errnum == ENODEV || errnum == ENXIO;
}

static struct vp_error *open_error(int errnum, const char *name, int pcpu)
{
	const char *lockdown = vp_host_lockdown("/sys");

	if ((errnum == EACCES || errnum == EPERM) && lockdown && !geteuid())
		return vp_error_new("cannot open event '%s': this kernel is locked down (%s)", name,
				    lockdown);
	if (errnum == EACCES || errnum == EPERM)
		return vp_error_errno(
		    errnum, "cannot open event '%s' (root or CAP_PERFMON is needed)", name);
	return vp_error_errno(errnum, "cannot open event '%s' on pCPU %d", name, pcpu);
}

static void counter_sets_note_missing(struct vp_counters *counters, const char *name)
{
	vp_vec_each (&counters->missing, known)
		if (!strcmp(*known, name))
			return;
	vp_vec_push(&counters->missing, vp_strdup(name));
}

static struct vp_error *open_one(const struct vp_recipe_event *event, int pcpu, int *leader,
				 struct vp_counters *counters)
{
	struct perf_event_attr attr = vp_perf_event_attr(&event->event);
	bool leads = event->set && *leader < 0;

	attr.disabled = leads;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
	/* Permanent counters have priority over the sets. */
	attr.pinned = !event->set && event->event.type != PERF_TYPE_SOFTWARE;
	VP_TRY(vp_perf_event_refuse(event->name, &attr));
	int fd = vp_perf_event_open(&attr, -1, pcpu, event->set ? *leader : -1);
	if (fd < 0 && counter_sets_is_missing(errno)) {
		counter_sets_note_missing(counters, event->name);
		return NULL;
	}
	if (fd < 0 && errno == EINVAL && event->set && *leader >= 0)
		return vp_error_new(
		    "set %" PRIu32
		    " does not fit into this CPU's hardware counters: no counter left for '%s'",
		    event->set, event->name);
	if (fd < 0)
		return open_error(errno, event->name, pcpu);
	if (leads)
		*leader = fd;
	vp_vec_push(&counters->open,
		    ((struct vp_counter){fd, pcpu, event->event.index, event->set, leads}));
	return NULL;
}

static struct vp_error *counter_sets_open_on(const struct vp_recipe *recipe, int pcpu,
					     struct vp_counters *counters)
{
	uint32_t set = 0;
	int leader = -1;

	vp_vec_each (&recipe->events, event) {
		if (event->event.source != VP_FROM_COUNTER)
			continue;
		if (event->set != set)
			leader = -1;
		set = event->set;
		VP_TRY(open_one(event, pcpu, &leader, counters));
	}
	return NULL;
}

static struct vp_error *switch_set(const struct vp_counters *counters, uint32_t set, int pcpu,
				   bool on)
{
	int leader = vp_counters_leader(counters, set, pcpu);

	if (leader < 0 || !ioctl(leader, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
		return NULL;
	return vp_error_errno(errno, "cannot %s set %" PRIu32 " on pCPU %d",
			      on ? "enable" : "disable", set, pcpu);
}

/* Enables a set; if it fits on the counters, it counts from that moment. */
static struct vp_error *try_set(const struct vp_counters *counters, uint32_t set, int pcpu,
				bool *fits)
{
	struct {
		uint64_t value, running;
	} reading = {.running = 1};
	int leader = vp_counters_leader(counters, set, pcpu);

	VP_TRY(switch_set(counters, set, pcpu, true));
	if (leader >= 0 && vp_read(leader, &reading, sizeof(reading)) < 0)
		return vp_error_errno(errno, "cannot read set %" PRIu32 " on pCPU %d", set, pcpu);
	*fits = reading.running;
	return NULL;
}

/* Tries each set alone; leaves all sets of the pCPU disabled. */
static struct vp_error *try_each(const struct vp_counters *counters, uint32_t n_sets, int pcpu)
{
	for (uint32_t set = 1; set <= n_sets; set++) {
		bool fits;
		VP_TRY(try_set(counters, set, pcpu, &fits));
		if (!fits)
			return vp_error_new("set %" PRIu32
					    " does not fit into this CPU's hardware counters "
					    "together with the 'count' events",
					    set);
		VP_TRY(switch_set(counters, set, pcpu, false));
	}
	return NULL;
}

/* Whether all sets fit at once; then they are enabled, otherwise disabled. Other counters must be
 * in their final state. */
static struct vp_error *try_all(const struct vp_counters *counters, uint32_t n_sets, int pcpu,
				bool *fit)
{
	*fit = true;
	for (uint32_t set = 1; *fit && set <= n_sets; set++)
		VP_TRY(try_set(counters, set, pcpu, fit));
	for (uint32_t set = 1; !*fit && set <= n_sets; set++)
		VP_TRY(switch_set(counters, set, pcpu, false));
	return *fit ? NULL : try_each(counters, n_sets, pcpu);
}

/* The event that ends intervals is open during the trial, because it needs a counter, too. */
static struct vp_error *try_beside_trigger(const struct vp_recipe *recipe, int pcpu,
					   struct vp_counters *counters)
{
	VP_AUTO_CLOSE int trigger = -1;
	bool fit;

	if (recipe->unit == VP_UNIT_EVENT) {
		VP_TRY(vp_counter_trigger(recipe, recipe->width, -1, pcpu, false, &trigger));
		if (ioctl(trigger, PERF_EVENT_IOC_ENABLE, 0))
			return open_error(errno, recipe->unit_name, pcpu);
	}
	VP_TRY(try_all(counters, recipe->n_sets, pcpu, &fit));
	counters->multiplexed |= !fit;
	return NULL;
}

static struct vp_error *counter_sets_open_counters(const struct vp_recipe *recipe,
						   const struct vp_pcpus *pcpus,
						   struct vp_counters *counters)
{
	for (size_t i = 0; i < pcpus->count; i++)
		VP_TRY(counter_sets_open_on(recipe, pcpus->at[i], counters));
	for (size_t i = 0; i < pcpus->count; i++)
		VP_TRY(try_beside_trigger(recipe, pcpus->at[i], counters));
	for (size_t i = 0; counters->multiplexed && i < pcpus->count; i++)
		for (uint32_t set = 1; set <= recipe->n_sets; set++)
			VP_TRY(switch_set(counters, set, pcpus->at[i], set == 1));
	return NULL;
}

struct vp_error *vp_counters_open(const struct vp_recipe *recipe, const struct vp_pcpus *pcpus,
				  struct vp_counters *ret)
{
	*ret = (struct vp_counters){0};
	struct vp_error *error = counter_sets_open_counters(recipe, pcpus, ret);
	if (error)
		vp_counters_close(ret);
	return error;
}

static void close_on(int pcpu, struct vp_counters *counters)
{
	size_t kept = 0;

	vp_vec_each (&counters->open, counter) {
		if (counter->pcpu == pcpu)
			close(counter->fd);
		else
			counters->open.at[kept++] = *counter;
	}
	counters->open.count = kept;
}

static struct vp_error *add_on(const struct vp_recipe *recipe, int pcpu,
			       struct vp_counters *counters)
{
	if (counters->multiplexed)
		return vp_error_new("multiplexed events (set) are counted only on pCPUs that were "
				    "online from the start (restart the recording)");
	VP_TRY(counter_sets_open_on(recipe, pcpu, counters));
	VP_TRY(try_beside_trigger(recipe, pcpu, counters));
	if (!counters->multiplexed)
		return NULL;
	counters->multiplexed = false;
	return vp_error_new("it has fewer hardware counters than other pCPUs");
}

struct vp_error *vp_counters_add(const struct vp_recipe *recipe, int pcpu,
				 struct vp_counters *counters)
{
	close_on(pcpu, counters);
	struct vp_error *error = add_on(recipe, pcpu, counters);
	if (error)
		close_on(pcpu, counters);
	return error;
}

void vp_counters_close(struct vp_counters *counters)
{
	vp_vec_each (&counters->open, counter)
		close(counter->fd);
	vp_vec_deinit(&counters->open);
	vp_vec_each (&counters->missing, name)
		free(*name);
	vp_vec_deinit(&counters->missing);
	*counters = (struct vp_counters){0};
}

int vp_counters_leader(const struct vp_counters *counters, uint32_t set, int pcpu)
{
	vp_vec_each (&counters->open, counter)
		if (counter->leads && counter->set == set && counter->pcpu == pcpu)
			return counter->fd;
	return -1;
}

static struct vp_event clock_event(void)
{
	return (struct vp_event){.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
}

struct vp_error *vp_counter_trigger(const struct vp_recipe *recipe, uint64_t period, int tid,
				    int pcpu, bool inherit, int *fd)
{
	const struct vp_event clock = clock_event();
	struct perf_event_attr attr =
	    vp_perf_event_attr(recipe->unit == VP_UNIT_EVENT ? &recipe->trigger : &clock);

	attr.sample_period = period;
	attr.disabled = 1;
	/* Pinned: not multiplexed with the sets. */
	attr.pinned = attr.type != PERF_TYPE_SOFTWARE;
	attr.inherit = inherit;
	VP_TRY(vp_perf_event_refuse(recipe->unit_name, &attr));
	*fd = vp_perf_event_open(&attr, tid, pcpu, -1);
	if (*fd >= 0)
		return NULL;
	if (counter_sets_is_missing(errno) || errno == EINVAL)
		return vp_error_new("cannot use '%s' as interval trigger on this machine: "
				    "'interval time 10ms' works everywhere",
				    recipe->unit_name);
	return open_error(errno, recipe->unit_name, pcpu);
}
