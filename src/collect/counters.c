/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/counters.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "collect/perf_event.h"

#define PMUS "/sys/bus/event_source/devices"
enum { MOST_ROTATION_MS = 1000 };

static bool is_missing(int errnum)
{
	return errnum == ENOENT || errnum == EOPNOTSUPP || errnum == ENODEV || errnum == ENXIO;
}

static struct vp_error *open_error(int errnum, const char *name, int pcpu)
{
	if (errnum == EACCES || errnum == EPERM)
		return vp_error_errno(
		    errnum, "cannot open event '%s' (root or CAP_PERFMON is needed)", name);
	return vp_error_errno(errnum, "cannot open event '%s' on pCPU %d", name, pcpu);
}

static void note_missing(struct vp_counters *counters, const char *name)
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

	/* What is counted all the time does not take turns. */
	attr.pinned = !event->set && event->event.type != PERF_TYPE_SOFTWARE;
	int fd = vp_perf_event_open(&attr, -1, pcpu, event->set ? *leader : -1);
	if (fd < 0 && is_missing(errno)) {
		note_missing(counters, event->name);
		return NULL;
	}
	if (fd < 0 && errno == EINVAL && event->set && *leader >= 0)
		return vp_error_new("set %" PRIu32 " does not fit into this processor's counters: "
				    "'%s' finds no place beside the others",
				    event->set, event->name);
	if (fd < 0)
		return open_error(errno, event->name, pcpu);
	if (event->set && *leader < 0)
		*leader = fd;
	vp_vec_push(&counters->open, ((struct vp_counter){fd, pcpu, event->event.index}));
	return NULL;
}

static struct vp_error *open_on(const struct vp_recipe *recipe, int pcpu,
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

/* The PMU of the processor's own counters, where it has one; NULL: none. */
static char *processor_pmu(void)
{
	DIR *folder = opendir(PMUS);
	struct dirent *entry;
	char *found = NULL;

	while (folder && !found && (entry = readdir(folder)))
		if (!strcmp(entry->d_name, "cpu") || !strncmp(entry->d_name, "armv8", 5))
			found = vp_format(PMUS "/%s/perf_event_mux_interval_ms", entry->d_name);
	if (folder)
		closedir(folder);
	return found;
}

/* How long a set has the counters before the next one gets them. */
static uint64_t rotation_ms(const struct vp_recipe *recipe)
{
	uint64_t ms = 1;

	if (recipe->unit == VP_UNIT_TIME)
		ms = recipe->width / recipe->sub_intervals / 1000000;
	return ms < 1 ? 1 : ms > MOST_ROTATION_MS ? MOST_ROTATION_MS : ms;
}

/* Without the file, sets take turns all the same: by the kernel's own measure. */
static void set_rotation(const struct vp_recipe *recipe, struct vp_counters *counters)
{
	VP_AUTO_FREE char *path = recipe->n_sets > 1 ? processor_pmu() : NULL;
	struct vp_buffer before = {0};
	struct vp_error *error = path ? vp_file_read(path, 64, &before) : NULL;
	VP_AUTO_FREE char *wanted = vp_format("%" PRIu64, rotation_ms(recipe));
	VP_AUTO_FCLOSE FILE *file = path && !error ? fopen(path, "w") : NULL;

	if (file && fputs(wanted, file) >= 0) {
		counters->rotation = VP_TAKE(path);
		counters->rotation_before = vp_strdup(vp_buffer_text(&before));
	}
	vp_error_free(error);
	vp_buffer_deinit(&before);
}

struct vp_error *vp_counters_open(const struct vp_recipe *recipe, const struct vp_pcpus *pcpus,
				  struct vp_counters *ret)
{
	*ret = (struct vp_counters){0};
	if (recipe->n_sets)
		set_rotation(recipe, ret);
	for (size_t i = 0; i < pcpus->count; i++) {
		struct vp_error *error = open_on(recipe, pcpus->at[i], ret);
		if (error) {
			vp_counters_close(ret);
			return error;
		}
	}
	return NULL;
}

void vp_counters_close(struct vp_counters *counters)
{
	VP_AUTO_FCLOSE FILE *file = counters->rotation ? fopen(counters->rotation, "w") : NULL;

	if (file)
		fputs(counters->rotation_before, file);
	free(counters->rotation);
	free(counters->rotation_before);
	vp_vec_each (&counters->open, counter)
		close(counter->fd);
	vp_vec_deinit(&counters->open);
	vp_vec_each (&counters->missing, name)
		free(*name);
	vp_vec_deinit(&counters->missing);
	*counters = (struct vp_counters){0};
}

static struct vp_event clock_event(void)
{
	return (struct vp_event){.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
}

struct vp_error *vp_counter_trigger(const struct vp_recipe *recipe, int tid, int pcpu, bool inherit,
				    int *fd)
{
	const struct vp_event clock = clock_event();
	struct perf_event_attr attr =
	    vp_perf_event_attr(recipe->unit == VP_UNIT_EVENT ? &recipe->trigger : &clock);

	attr.sample_period = recipe->width;
	attr.disabled = 1;
	/* It does not take turns with the sets. */
	attr.pinned = attr.type != PERF_TYPE_SOFTWARE;
	attr.inherit = inherit;
	*fd = vp_perf_event_open(&attr, tid, pcpu, -1);
	if (*fd >= 0)
		return NULL;
	if (is_missing(errno) || errno == EINVAL)
		return vp_error_new("this machine cannot close intervals by '%s': 'interval time "
				    "10ms' works everywhere",
				    recipe->unit_name);
	return open_error(errno, recipe->unit_name, pcpu);
}
