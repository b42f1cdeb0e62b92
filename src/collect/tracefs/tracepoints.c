/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracefs/tracepoints.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "bpf/trace_abi.h"
#include "collect/tracefs/dynamic_events.h"
#include "collect/tracefs/probe_definition.h"
#include "collect/tracefs/thread_names.h"
#include "collect/tracefs/trace_instance.h"
#include "host/perf_event.h"
#include "host/pmu.h"
#include "host/source.h"
#include "schema/event.h"
#include "schema/records.h"
#include "schema/ring_page.h"
#include "schema/schema.h"
#include "schema/trace_records.h"
#include "schema/tracepoint_format.h"

#define TRACING VP_SYSFS "/kernel/tracing"
#define EVENTS TRACING "/events"
#define RENAME "task:task_rename"

/* Indexes of its fields. */
enum { RENAMED = 1, RENAMED_TO = 3 };

enum {
	PARTS = 4, /* the reader is woken at 1/PARTS of a full buffer */
	FORMAT_MAX = 1 << 16,
	EVENTS_MAX = 1024,  /* each needs a file descriptor per pCPU */
	IDS = 1 << 16,      /* event numbers have 16 bits in a record */
	BATCH = 128 * 1024, /* approximate number of record bytes that are passed on at once */
};

struct tracepoint {
	char *name;   /* name shown to users: a probe has another one in the kernel … */
	char *kernel; /* … SYSTEM:EVENT */
	const char *filter;
	uint32_t id; /* event number in the kernel */
	const struct vp_event_class *class;
	bool counts_time;      /* perf's count of it is a time, not a number of events */
	vp_event_classes self; /* its class, until it is defined in the stream */
	vp_tracepoint_layout layout;
};

/* Buffer of a pCPU: ftrace's, or perf's, which is a new one each time the pCPU comes online. */
struct source {
	uint32_t pcpu;
	int pages;       /* by ftrace; -1: by perf */
	VP_VEC(int) fds; /* by perf: of all tracepoints; the first has the buffer */
	struct perf_event_mmap_page *page;
	uint64_t taken;     /* events read */
	uint64_t dropped;   /* lost events, as counted by the kernel */
	uint64_t counted;   /* events that happened: known at the end … */
	uint64_t uncounted; /* … except these, of which only the ones read are known */
	bool ended;
	uint32_t reported[VP_TRACE_NAMES]; /* threads whose name is in the stream, by tid */
};

struct vp_tracepoints {
	struct vp_tracepoints_options options;
	VP_VEC(struct tracepoint) events;
	struct vp_dynamic_events *probes;
	uint16_t *index_of_id;              /* by event number in the kernel: index + 1 */
	struct vp_trace_instance *instance; /* NULL: by perf's buffers */
	struct tracepoint rename;           /* by ftrace: the event task:task_rename */
	struct vp_pcpus pcpus;
	VP_VEC(struct source) sources;
	struct vp_thread_names names;
	struct vp_buffer records;          /* records of a pCPU to pass on … */
	struct vp_tracepoints_batch batch; /* … and their properties */
	char *copy; /* a copy of a page, or of a record of perf's that wraps around */
	char *missing, *detour;
	int epoll;
};

static bool has_wildcards(const char *name)
{
	return strpbrk(name, "*?[") != NULL;
}

bool vp_tracepoints_is_name(const char *name)
{
	struct vp_event event;
	const char *colon = strchr(name, ':');

	if (vp_probe_is_definition(name))
		return true;
	if (!colon || strchr(name, '/'))
		return false;
	return has_wildcards(name) ||
	       (vp_event_find((struct vp_slice){name, strlen(name)}, &event) && event.of_machine);
}

/* Path of a file of SYSTEM:EVENT. */
static char *tracepoints_path_of(const char *name, const char *file)
{
	char *path = vp_format("%s/%s/%s", EVENTS, name, file), *colon = strchr(path, ':');

	if (colon)
		*colon = '/';
	return path;
}

static struct vp_error *read_format(struct tracepoint *event, const char *path)
{
	struct vp_event_class *class;
	struct vp_buffer text = {0};

	VP_TRY(vp_event_classes_add(&event->self, event->name, &class));
	struct vp_error *error = vp_file_read(path, FORMAT_MAX, &text);
	if (!error)
		error =
		    vp_tracepoint_format_parse(path, text.bytes, text.size, class, &event->layout);
	vp_buffer_deinit(&text);
	return error;
}

/* Adds an event, without wildcards, once. `shown`: name shown to users. */
static struct vp_error *tracepoints_add_event(struct vp_tracepoints *self, const char *name,
					      const char *shown, const char *filter)
{
	VP_AUTO_FREE char *path = tracepoints_path_of(name, "format");
	struct vp_event found = {.of_machine = true};

	VP_TRY(vp_pmu_resolve(VP_SYSFS, name, &found));
	if (found.config >= IDS)
		return vp_error_new("event '%s' has number %" PRIu64 ": expected at most %d", name,
				    (uint64_t)found.config, IDS - 1);
	if (self->index_of_id[found.config])
		return NULL;
	if (self->events.count == EVENTS_MAX)
		return vp_error_usage("option --event: expected at most %d tracepoints",
				      EVENTS_MAX);
	/* include/trace/events/sched.h: __perf_count(delay), __perf_count(runtime) */
	bool counts_time = !strncmp(name, "sched:sched_stat_", 17);
	self->index_of_id[found.config] = (uint16_t)(self->events.count + 1);
	vp_vec_push(&self->events, ((struct tracepoint){.name = vp_strdup(shown),
							.kernel = vp_strdup(name),
							.filter = filter,
							.id = (uint32_t)found.config,
							.counts_time = counts_time}));
	return read_format(&self->events.at[self->events.count - 1], path);
}

/* ".../events/SYSTEM/EVENT/id" */
static char *name_of_path(const char *path)
{
	VP_AUTO_FREE char *words = vp_strdup(path + strlen(EVENTS) + 1);
	char *event = strchr(words, '/'), *end = strrchr(words, '/');

	*event++ = 0;
	*end = 0;
	return vp_format("%s:%s", words, event);
}

static struct vp_error *add_matching(struct vp_tracepoints *self, const char *pattern,
				     const char *filter)
{
	VP_AUTO_FREE char *path =
	    tracepoints_path_of(pattern, "id"); /* ftrace's own events have no id */
	struct vp_error *error = NULL;
	glob_t found = {0};

	if (strchr(pattern, '/') || glob(path, 0, NULL, &found))
		error = vp_error_usage("no tracepoint matches '%s' in '%s'", pattern, EVENTS);
	for (size_t i = 0; !error && i < found.gl_pathc; i++) {
		VP_AUTO_FREE char *name = name_of_path(found.gl_pathv[i]);
		error = tracepoints_add_event(self, name, name, filter);
	}
	globfree(&found);
	return error;
}

static struct vp_error *add_probe(struct vp_tracepoints *self, const char *definition,
				  const char *filter)
{
	VP_AUTO_FREE char *name = NULL, *shown = NULL;

	VP_TRY(vp_dynamic_events_add(self->probes, definition, &name, &shown));
	return tracepoints_add_event(self, name, shown, filter);
}

static struct vp_error *add_spec(struct vp_tracepoints *self, const struct vp_tracepoint_spec *spec)
{
	if (vp_probe_is_definition(spec->name))
		return add_probe(self, spec->name, spec->filter);
	return has_wildcards(spec->name)
		   ? add_matching(self, spec->name, spec->filter)
		   : tracepoints_add_event(self, spec->name, spec->name, spec->filter);
}

/* Continues without them. */
static void tracepoints_note_missing(struct vp_tracepoints *self, const char *name,
				     struct vp_error *error)
{
	char *before = self->missing;

	self->missing = before ? vp_format("%s, %s", before, name)
			       : vp_format("this kernel does not have %s", name);
	free(before);
	vp_error_free(error);
}

static struct vp_error *tracepoints_add_all(struct vp_tracepoints *self)
{
	for (size_t i = 0; i < self->options.n_specs; i++) {
		const struct vp_tracepoint_spec *spec = &self->options.specs[i];
		struct vp_error *error = add_spec(self, spec);
		if (error && spec->optional)
			tracepoints_note_missing(self, spec->name, error);
		else if (error)
			return error;
	}
	return self->events.count ? NULL : vp_error_new("%s", self->missing);
}

static struct vp_error *tracepoints_open_event(struct vp_tracepoints *self,
					       const struct tracepoint *event,
					       struct source *source)
{
	bool first = !source->fds.count;
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_TRACEPOINT,
	    .size = sizeof(attr),
	    .config = event->id,
	    .sample_period = 1,
	    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
	    .disabled = 1,
	    .sample_id_all = 1,
	    .comm = first,
	    .watermark = 1,
	    .wakeup_watermark = (uint32_t)(self->options.ring_bytes / PARTS),
	    .use_clockid = 1,
	    .clockid = CLOCK_MONOTONIC,
	};
	int fd = vp_perf_event_open(&attr, -1, (int)source->pcpu, -1);

	if (fd < 0)
		return vp_error_errno(errno, "cannot open event '%s' on pCPU %" PRIu32 "%s",
				      event->name, source->pcpu,
				      errno == EMFILE ? " (each event needs a file descriptor on "
							"every pCPU: ulimit -n)"
						      : "");
	vp_vec_push(&source->fds, fd);
	if (event->filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, event->filter))
		return vp_error_usage("option --filter: the kernel rejects '%s' for event '%s': %s",
				      event->filter, event->name, strerror(errno));
	if (!first && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, source->fds.at[0]))
		return vp_error_errno(errno, "cannot share the buffer of pCPU %" PRIu32,
				      source->pcpu);
	return NULL;
}

static struct vp_error *map_buffer(struct vp_tracepoints *self, struct source *source)
{
	size_t size = self->options.ring_bytes + (size_t)getpagesize();
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, source->fds.at[0], 0);
	struct epoll_event wanted = {.events = EPOLLIN};

	if (memory == MAP_FAILED)
		return vp_error_errno(errno, "cannot map the perf buffer of pCPU %" PRIu32,
				      source->pcpu);
	source->page = memory;
	return epoll_ctl(self->epoll, EPOLL_CTL_ADD, source->fds.at[0], &wanted)
		   ? vp_error_errno(errno, "cannot wait for perf events")
		   : NULL;
}

static struct vp_error *open_by_perf(struct vp_tracepoints *self, uint32_t pcpu)
{
	vp_vec_push(&self->sources, ((struct source){.pcpu = pcpu, .pages = -1}));
	struct source *source = &self->sources.at[self->sources.count - 1];

	vp_vec_each (&self->events, event) {
		VP_TRY(tracepoints_open_event(self, event, source));
		if (!source->page)
			VP_TRY(map_buffer(self, source));
	}
	return NULL;
}

static struct vp_error *open_by_ftrace(struct vp_tracepoints *self, uint32_t pcpu)
{
	struct epoll_event wanted = {.events = EPOLLIN};

	vp_vec_push(&self->sources, ((struct source){.pcpu = pcpu, .pages = -1}));
	struct source *source = &self->sources.at[self->sources.count - 1];
	VP_TRY(vp_trace_instance_open_pages(self->instance, pcpu, &source->pages));
	return epoll_ctl(self->epoll, EPOLL_CTL_ADD, source->pages, &wanted)
		   ? vp_error_errno(errno, "cannot wait for ftrace's pages")
		   : NULL;
}

/* Without this event, threads keep their first name. */
static void watch_renames(struct vp_tracepoints *self)
{
	struct vp_event found = {.of_machine = true};
	VP_AUTO_FREE char *path = tracepoints_path_of(RENAME, "format");

	self->rename.name = vp_strdup(RENAME);
	struct vp_error *error = vp_pmu_resolve(VP_SYSFS, RENAME, &found);
	if (!error)
		error = read_format(&self->rename, path);
	if (!error)
		error = vp_trace_instance_add(self->instance, RENAME, NULL);
	if (!error && self->rename.layout.count > RENAMED_TO)
		self->rename.id = (uint32_t)found.config;
	if (error) {
		char *before = self->missing;
		self->missing =
		    vp_format("%s%sthreads that are renamed keep their former names: %s",
			      before ? before : "", before ? "; " : "", vp_error_message(error));
		free(before);
	}
	vp_error_free(error);
}

/* Not an error if the kernel creates no instance: perf's buffers work, too, at a higher cost. */
static struct vp_error *add_to_instance(struct vp_tracepoints *self)
{
	struct vp_error *error =
	    vp_trace_instance_new(TRACING, self->options.ring_bytes, &self->instance);

	if (error) {
		self->detour = vp_strdup(vp_error_message(error));
		vp_error_free(error);
		return NULL;
	}
	watch_renames(self);
	vp_vec_each (&self->events, event)
		VP_TRY(vp_trace_instance_add(self->instance, event->kernel, event->filter));
	return NULL;
}

static struct vp_error *open_tracepoints(struct vp_tracepoints *self)
{
	VP_TRY(tracepoints_add_all(self));
	if (!self->options.by_perf)
		VP_TRY(add_to_instance(self));
	VP_TRY(vp_pcpus_online(&self->pcpus));
	self->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (self->epoll < 0)
		return vp_error_errno(errno, "cannot wait for events");
	vp_vec_each (&self->pcpus, pcpu)
		VP_TRY(self->instance ? open_by_ftrace(self, (uint32_t)*pcpu)
				      : open_by_perf(self, (uint32_t)*pcpu));
	return NULL;
}

struct vp_error *vp_tracepoints_open(const struct vp_tracepoints_options *options,
				     struct vp_tracepoints **ret)
{
	struct vp_tracepoints *self = vp_alloc(sizeof(*self));

	self->options = *options;
	self->epoll = -1;
	self->copy = vp_alloc(UINT16_MAX + 1);
	self->index_of_id = vp_alloc(IDS * sizeof(*self->index_of_id));
	self->probes = vp_dynamic_events_new(TRACING, "/proc/kallsyms");
	struct vp_error *error = open_tracepoints(self);
	if (error)
		vp_tracepoints_free(self);
	else
		*ret = self;
	return error;
}

static void tracepoint_deinit(struct tracepoint *event)
{
	free(event->name);
	free(event->kernel);
	vp_event_classes_deinit(&event->self);
	vp_vec_deinit(&event->layout);
}

static void source_deinit(const struct vp_tracepoints *self, struct source *source)
{
	if (source->page)
		munmap(source->page, self->options.ring_bytes + (size_t)getpagesize());
	vp_vec_each (&source->fds, fd)
		close(*fd);
	vp_vec_deinit(&source->fds);
	if (source->pages >= 0)
		close(source->pages);
}

void vp_tracepoints_free(struct vp_tracepoints *self)
{
	if (!self)
		return;
	vp_vec_each (&self->sources, source)
		source_deinit(self, source);
	vp_trace_instance_free(self->instance);
	vp_dynamic_events_free(self->probes); /* after its events were closed */
	vp_vec_each (&self->events, event)
		tracepoint_deinit(event);
	tracepoint_deinit(&self->rename);
	if (self->epoll >= 0)
		close(self->epoll);
	vp_vec_deinit(&self->sources);
	vp_vec_deinit(&self->events);
	vp_vec_deinit(&self->pcpus);
	free(self->index_of_id);
	vp_thread_names_deinit(&self->names);
	vp_buffer_deinit(&self->records);
	free(self->copy);
	free(self->missing);
	free(self->detour);
	free(self);
}

const char *vp_tracepoints_missing(const struct vp_tracepoints *self)
{
	return self->missing;
}

const char *vp_tracepoints_by_perf(const struct vp_tracepoints *self)
{
	return self->detour;
}

unsigned vp_tracepoints_leftover(const struct vp_tracepoints *self)
{
	return vp_dynamic_events_leftover(self->probes);
}

struct vp_error *vp_tracepoints_define(struct vp_tracepoints *self, vp_event_classes *classes)
{
	vp_vec_each (&self->events, event) {
		struct vp_event_class *class;
		VP_TRY(vp_event_classes_add(classes, event->name, &class));
		vp_vec_each (&event->self.at[0].fields, field)
			VP_TRY(vp_event_class_add_field(class, field));
		event->self.at[0].id = class->id;
		event->class = &event->self.at[0];
	}
	return NULL;
}

/* PERF_EVENT_IOC_ENABLE or …_DISABLE of all. */
static struct vp_error *switch_source(const struct source *source, unsigned long request)
{
	vp_vec_each (&source->fds, fd)
		if (ioctl(*fd, request, 0))
			return vp_error_errno(
			    errno, "cannot enable or disable the tracepoints of pCPU %" PRIu32,
			    source->pcpu);
	return NULL;
}

static struct vp_error *switch_all(struct vp_tracepoints *self, unsigned long request)
{
	vp_vec_each (&self->sources, source)
		VP_TRY(switch_source(source, request));
	return NULL;
}

struct vp_error *vp_tracepoints_begin(struct vp_tracepoints *self)
{
	return self->instance ? vp_trace_instance_switch(self->instance, true)
			      : switch_all(self, PERF_EVENT_IOC_ENABLE);
}

/* perf counts all events, including lost ones. */
static struct vp_error *end_by_perf(struct vp_tracepoints *self)
{
	VP_TRY(switch_all(self, PERF_EVENT_IOC_DISABLE));
	vp_vec_each (&self->sources, source) {
		vp_vec_each (&source->fds, fd) {
			uint64_t count;
			if (vp_read(*fd, &count, sizeof(count)) != sizeof(count))
				return vp_error_errno(errno, "cannot read a count of pCPU %" PRIu32,
						      source->pcpu);
			if (!self->events.at[fd - source->fds.at].counts_time)
				source->counted += count;
		}
		source->ended = true;
	}
	return NULL;
}

struct vp_error *vp_tracepoints_end(struct vp_tracepoints *self)
{
	if (!self->instance)
		return end_by_perf(self);
	vp_vec_each (&self->sources, source)
		source->ended = true;
	return vp_trace_instance_switch(self->instance, false);
}

static bool has_pages(const struct vp_tracepoints *self, uint32_t pcpu)
{
	vp_vec_each (&self->sources, source)
		if (source->pcpu == pcpu && source->pages >= 0)
			return true;
	return false;
}

/* perf's events from before the pCPU went offline are not reenabled with it. */
static struct vp_error *open_late(struct vp_tracepoints *self, uint32_t pcpu)
{
	if (self->instance)
		return open_by_ftrace(self, pcpu);
	VP_TRY(open_by_perf(self, pcpu));
	return switch_source(&self->sources.at[self->sources.count - 1], PERF_EVENT_IOC_ENABLE);
}

struct vp_error *vp_tracepoints_add_pcpu(struct vp_tracepoints *self, uint32_t pcpu)
{
	size_t before = self->sources.count;
	struct vp_error *error = has_pages(self, pcpu) ? NULL : open_late(self, pcpu);

	if (error && self->sources.count > before)
		source_deinit(self, &self->sources.at[--self->sources.count]);
	return error;
}

int vp_tracepoints_fd(const struct vp_tracepoints *self)
{
	return self->epoll;
}

/* Adds a record to the batch. */
static void note_record(struct vp_tracepoints *self, uint64_t time, bool is_event)
{
	if (!self->batch.n++)
		self->batch.first = time;
	self->batch.last = time;
	self->batch.n_events += is_event;
}

static void tracepoints_put_name(struct vp_tracepoints *self, uint64_t time, uint32_t pid,
				 uint32_t tid)
{
	struct vp_task task = *vp_thread_names_find(&self->names, pid, tid);

	if (!task.comm[0])
		return;
	task.time = time;
	vp_buffer_append(&self->records, &task, sizeof(task));
	note_record(self, time, false);
}

/* Puts the thread's name before its event, if the pCPU's stream does not have it or may have
 * lost it: a flight recorder keeps the last name per slot. */
static inline void tracepoints_name_thread(struct vp_tracepoints *self, struct source *source,
					   uint64_t time, uint32_t pid, uint32_t tid)
{
	uint32_t *reported = &source->reported[tid % VP_TRACE_NAMES];

	if (!tid || *reported == tid)
		return;
	*reported = tid;
	tracepoints_put_name(self, time, pid, tid);
}

/* All streams get the name again before the thread's next event. */
static void rename_thread(struct vp_tracepoints *self, uint32_t pid, uint32_t tid,
			  struct vp_slice comm)
{
	vp_thread_names_set(&self->names, pid, tid, comm);
	vp_vec_each (&self->sources, each)
		if (each->reported[tid % VP_TRACE_NAMES] == tid)
			each->reported[tid % VP_TRACE_NAMES] = 0;
}

/* task:task_rename: common_pid, pid, oldcomm, newcomm */
static void take_rename(struct vp_tracepoints *self, struct vp_slice raw)
{
	const struct vp_tracepoint_field *who = &self->rename.layout.at[RENAMED],
					 *what = &self->rename.layout.at[RENAMED_TO];
	struct vp_cursor at = vp_cursor_of(raw.bytes, raw.size), to = at;

	vp_cursor_bytes(&at, who->offset);
	uint32_t tid = vp_cursor_u32(&at);
	vp_cursor_bytes(&to, what->offset);
	struct vp_slice comm = vp_cursor_bytes(&to, what->size);
	if (vp_cursor_ok(&at) && vp_cursor_ok(&to))
		rename_thread(self, 0, tid, comm);
}

/* The time, or the last one of the stream if that is later. */
static uint64_t in_order(const struct vp_tracepoints *self, uint64_t time)
{
	return time < self->batch.last ? self->batch.last : time;
}

/* PERF_RECORD_COMM: pid, tid, name, followed by pid, tid and time of the record. */
static void tracepoints_take_comm(struct vp_tracepoints *self, struct source *source,
				  struct vp_cursor *body)
{
	uint32_t pid = vp_cursor_u32(body), tid = vp_cursor_u32(body);
	size_t left = vp_cursor_left(body);

	if (left < 16)
		return;
	struct vp_slice comm = vp_cursor_bytes(body, left - 16);
	vp_cursor_u64(body);
	uint64_t time = vp_cursor_u64(body);
	rename_thread(self, pid, tid, comm);
	tracepoints_name_thread(self, source, in_order(self, time), pid, tid);
}

/* The common fields of all events: event number and thread. */
struct common {
	uint16_t id, flags;
	uint32_t tid;
};

static inline void tracepoints_take_event(struct vp_tracepoints *self, struct source *source,
					  uint64_t time, uint32_t pid, struct vp_slice raw)
{
	struct common common;

	if (raw.size < sizeof(common))
		return;
	memcpy(&common, raw.bytes, sizeof(common));
	if (common.id && common.id == self->rename.id)
		take_rename(self, raw);
	if (!self->index_of_id[common.id])
		return;
	const struct tracepoint *event = &self->events.at[self->index_of_id[common.id] - 1];
	time = in_order(self, time);
	tracepoints_name_thread(self, source, time, pid, common.tid);
	if (!vp_tracepoint_convert(event->class, &event->layout, time, raw, &self->records))
		return;
	note_record(self, time, true);
	source->taken++;
	source->uncounted += event->counts_time;
}

static void tracepoints_take_sample(struct vp_tracepoints *self, struct source *source,
				    struct vp_cursor *body)
{
	uint32_t pid = vp_cursor_u32(body);
	vp_cursor_u32(body);
	uint64_t time = vp_cursor_u64(body);
	struct vp_slice raw = vp_cursor_bytes(body, vp_cursor_u32(body));

	tracepoints_take_event(self, source, time, pid, raw);
}

static void take_perf_record(struct vp_tracepoints *self, struct source *source,
			     const struct perf_event_header *header)
{
	struct vp_cursor body = vp_cursor_of(header + 1, header->size - sizeof(*header));

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		tracepoints_take_sample(self, source, &body);
		break;
	case PERF_RECORD_COMM:
		tracepoints_take_comm(self, source, &body);
		break;
	case PERF_RECORD_LOST:
		vp_cursor_u64(&body);
		source->dropped += vp_cursor_u64(&body);
		break;
	}
}

static void tracepoints_emit(struct vp_tracepoints *self, const struct source *source)
{
	self->batch.bytes = self->records.bytes;
	self->batch.size = self->records.size;
	if (self->batch.size)
		self->options.take(self->options.context, source->pcpu, &self->batch);
	self->batch = (struct vp_tracepoints_batch){0};
	self->records.size = 0;
}

/* Reads at most twice the size of a ring: events may arrive faster than they are read, and would
 * delay other pCPUs, the end and signals forever. */
static struct vp_error *tracepoints_drain_pages(struct vp_tracepoints *self, struct source *source)
{
	const size_t page_size = (size_t)getpagesize();
	size_t left = 2 * (self->options.ring_bytes / page_size + 1);
	struct vp_ring_page page;
	struct vp_slice entry;
	uint64_t time;
	ssize_t size;

	while (left-- && (size = vp_read(source->pages, self->copy, page_size)) > 0) {
		if (!vp_ring_page_open((struct vp_slice){self->copy, (size_t)size}, &page))
			return vp_error_new("a page of pCPU %" PRIu32 "'s ring is malformed: "
					    "expected an entry's header and its length",
					    source->pcpu);
		while (vp_ring_page_next(&page, &time, &entry))
			tracepoints_take_event(self, source, time, 0, entry);
		if (self->records.size >= BATCH)
			tracepoints_emit(self, source);
	}
	tracepoints_emit(self, source);
	return vp_trace_instance_lost(self->instance, source->pcpu, &source->dropped);
}

static void tracepoints_drain_buffer(struct vp_tracepoints *self, struct source *source)
{
	const char *data = (const char *)source->page + getpagesize();
	uint64_t head = __atomic_load_n(&source->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = source->page->data_tail, mask = self->options.ring_bytes - 1;

	while (tail < head) {
		const struct perf_event_header *header = (const void *)(data + (tail & mask));
		size_t size = header->size, first = self->options.ring_bytes - (tail & mask);
		if (size < sizeof(*header))
			break;
		if (size > first) {
			memcpy(self->copy, header, first);
			memcpy(self->copy + first, data, size - first);
			header = (const void *)self->copy;
		}
		take_perf_record(self, source, header);
		tail += size;
		if (self->records.size >= BATCH)
			tracepoints_emit(self, source);
	}
	tracepoints_emit(self, source);
	__atomic_store_n(&source->page->data_tail, head, __ATOMIC_RELEASE);
}

struct vp_error *vp_tracepoints_drain(struct vp_tracepoints *self)
{
	struct vp_error *error = NULL;

	vp_vec_each (&self->sources, source) {
		struct vp_error *failed =
		    self->instance ? tracepoints_drain_pages(self, source) : NULL;
		if (!self->instance)
			tracepoints_drain_buffer(self, source);
		if (error)
			vp_error_free(failed);
		else
			error = failed;
	}
	return error;
}

static struct vp_tracepoints_loss loss_by_ftrace(const struct source *source)
{
	return (struct vp_tracepoints_loss){.events = source->dropped,
					    .all =
						source->ended ? source->taken + source->dropped : 0,
					    .full = source->dropped};
}

static struct vp_tracepoints_loss loss_by_perf(const struct source *source)
{
	uint64_t all = source->counted + source->uncounted;
	uint64_t missing = all > source->taken ? all - source->taken : 0;
	struct vp_tracepoints_loss loss = {
	    .events = source->dropped, .all = all, .full = source->dropped};

	if (source->ended && (!source->uncounted || missing > source->dropped))
		loss.events = missing;
	if (loss.full > loss.events) /* the lost records include thread names */
		loss.full = loss.events;
	return loss;
}

struct vp_tracepoints_loss vp_tracepoints_lost(const struct vp_tracepoints *self, uint32_t pcpu)
{
	struct vp_tracepoints_loss sum = {0};

	vp_vec_each (&self->sources, source) {
		if (source->pcpu != pcpu)
			continue;
		struct vp_tracepoints_loss loss =
		    self->instance ? loss_by_ftrace(source) : loss_by_perf(source);
		sum.events += loss.events;
		sum.all += loss.all;
		sum.full += loss.full;
	}
	return sum;
}

static void tracepoints_take_nothing(void *context, uint32_t pcpu,
				     const struct vp_tracepoints_batch *batch)
{
}

static bool probe_tracepoints(char *detail, size_t size)
{
	const struct vp_tracepoint_spec spec = {.name = "sched:sched_switch"};
	const struct vp_tracepoints_options options = {.specs = &spec,
						       .n_specs = 1,
						       .ring_bytes = (size_t)getpagesize(),
						       .take = tracepoints_take_nothing};
	struct vp_tracepoints *tracepoints = NULL;
	struct vp_error *error = vp_tracepoints_open(&options, &tracepoints);
	bool found = vp_probe_report_opened(
	    error, tracepoints ? vp_tracepoints_by_perf(tracepoints) : NULL, detail, size);

	vp_tracepoints_free(tracepoints);
	return found;
}

const struct vp_source *vp_source_tracepoints(void)
{
	static const struct vp_probe probe = {
	    "tracepoints", "'vperf record -e SYSTEM:EVENT' does not work (is tracefs mounted?)",
	    false, probe_tracepoints};
	static const struct vp_source source = {&probe, 1};

	return &source;
}
