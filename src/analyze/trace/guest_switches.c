/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/guest_switches.h"

#include <string.h>

#include "analyze/common/guest_trace.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/records.h"
#include "store/packet.h"
#include "store/trace_reader.h"
#include "timeline/merge.h"

/* Limited because a guest may invent any number of threads. */
enum { MAX_NAMES = 1 << 20 };

/* A guest's trace. */
struct source {
	struct vp_guest_switches *switches;
	const struct vp_guest_trace *trace;
	uint32_t vm;
	vp_stream_readers streams;
	struct vp_merge merge;
	bool merging, ended;
	uint64_t last; /* time of the last event read */
	bool has_next;
	struct vp_guest_switch next; /* read, but later than required */
};

struct vp_guest_switches {
	vp_guest_traces traces;
	VP_VEC(struct source) sources;
	struct vp_map name_of, pid_of; /* by VM and tid */
	struct vp_intern names;
};

static struct source *guest_switches_source_of(const struct vp_guest_switches *switches,
					       uint32_t vm)
{
	vp_vec_each (&switches->sources, source)
		if (source->vm == vm)
			return source;
	return NULL;
}

static struct vp_error *open_sources(const char *directory, const vp_vms *vms,
				     struct vp_guest_switches *switches)
{
	VP_TRY(vp_guest_traces_find(directory, vms, &switches->traces));
	/* Merges refer to their source's streams: the vector must not grow later. */
	vp_vec_each (&switches->traces, trace)
		vp_vec_push(&switches->sources,
			    ((struct source){
				.switches = switches, .trace = trace, .vm = vp_vm_id(trace->vm)}));
	vp_vec_each (&switches->sources, source) {
		VP_TRY(vp_trace_open(source->trace->path, VP_STREAMS_ALL, &source->streams));
		vp_merge_init(&source->merge, &source->streams, NULL);
		source->merging = true;
	}
	return NULL;
}

struct vp_error *vp_guest_switches_open(const char *directory, const vp_vms *vms,
					struct vp_guest_switches **ret)
{
	struct vp_guest_switches *switches = vp_alloc(sizeof(*switches));

	*switches = (struct vp_guest_switches){0};
	struct vp_error *error = open_sources(directory, vms, switches);
	if (error)
		vp_guest_switches_close(switches);
	else
		*ret = switches;
	return error;
}

void vp_guest_switches_close(struct vp_guest_switches *switches)
{
	if (!switches)
		return;
	vp_vec_each (&switches->sources, source) {
		if (source->merging)
			vp_merge_deinit(&source->merge);
		vp_trace_close(&source->streams);
	}
	vp_vec_deinit(&switches->sources);
	vp_guest_traces_deinit(&switches->traces);
	vp_map_deinit(&switches->name_of);
	vp_map_deinit(&switches->pid_of);
	vp_intern_deinit(&switches->names);
	free(switches);
}

static uint64_t guest_switches_key_of(uint32_t vm, uint32_t tid)
{
	return (uint64_t)vm << 32 | tid;
}

static void guest_switches_update_name(void *context, uint32_t tid, struct vp_slice comm)
{
	const struct source *source = context;
	struct vp_guest_switches *switches = source->switches;
	struct vp_buffer clean = {0};
	bool inserted;

	if (!tid || switches->name_of.count >= MAX_NAMES)
		return;
	vp_text_clean(comm.bytes, strnlen(comm.bytes, comm.size), &clean);
	uint32_t name = vp_intern_string(&switches->names, vp_buffer_text(&clean));
	*vp_map_insert(&switches->name_of, guest_switches_key_of(source->vm, tid), name,
		       &inserted) = name;
	vp_buffer_deinit(&clean);
}

static void guest_switches_update_pid(const struct source *source, const struct vp_task *task)
{
	struct vp_map *pids = &source->switches->pid_of;
	bool inserted;

	if (pids->count < MAX_NAMES)
		*vp_map_insert(pids, guest_switches_key_of(source->vm, task->tid), task->pid,
			       &inserted) = task->pid;
}

/* False: not a context switch, or not with its class's fields. */
static bool guest_switches_read(const struct source *source, const struct vp_merge_head *head,
				struct vp_guest_switch *ret)
{
	const struct vp_defined_record *record = (const void *)head->record;
	const struct vp_event_class *class =
	    head->record->id < VP_ID_DEFINED
		? NULL
		: vp_event_classes_find(&source->trace->classes, head->record->id);
	struct vp_event_value value;

	if (!class || strcmp(class->name, "sched:sched_switch") != 0)
		return false;
	struct vp_cursor fields = vp_event_fields(record);
	*ret = (struct vp_guest_switch){.time = head->time,
					.vcpu = vp_stream_cpu(source->streams.at[head->stream])};
	vp_vec_each (&class->fields, field) {
		if (!vp_event_next_value(&fields, field, &value))
			return false;
		if (field->shape != VP_EVENT_INTEGER)
			continue;
		if (!strcmp(field->name, "prev_pid"))
			ret->prev = (uint32_t)value.number;
		if (!strcmp(field->name, "next_pid"))
			ret->next = (uint32_t)value.number;
	}
	return true;
}

/* Reads the source's next context switch. */
static void guest_switches_advance(struct source *source)
{
	const struct vp_merge_head *head;

	while (!source->has_next && (head = vp_merge_next(&source->merge))) {
		source->last = head->time;
		if (head->record->id == VP_ID_task)
			guest_switches_update_pid(source, (const void *)head->record);
		source->has_next = guest_switches_read(source, head, &source->next);
		vp_guest_trace_names(&source->trace->classes, head->record,
				     guest_switches_update_name, source);
	}
	source->ended = !source->has_next;
}

bool vp_guest_switches_next(struct vp_guest_switches *switches, uint32_t vm, uint64_t until,
			    struct vp_guest_switch *ret)
{
	struct source *source = guest_switches_source_of(switches, vm);

	if (!source)
		return false;
	if (!source->has_next && !source->ended)
		guest_switches_advance(source);
	if (!source->has_next || source->next.time > until)
		return false;
	*ret = source->next;
	source->has_next = false;
	return true;
}

bool vp_guest_switches_ended(const struct vp_guest_switches *switches, uint32_t vm, uint64_t time)
{
	const struct source *source = guest_switches_source_of(switches, vm);

	return source && source->ended && source->last < time;
}

const char *vp_guest_switches_comm(const struct vp_guest_switches *switches, uint32_t vm,
				   uint32_t tid)
{
	const uint32_t *name = vp_map_find(&switches->name_of, guest_switches_key_of(vm, tid));

	if (!tid)
		return "swapper"; /* each guest CPU has an idle task with tid 0 */
	return name ? vp_intern_text(&switches->names, *name) : NULL;
}

uint32_t vp_guest_switches_pid(const struct vp_guest_switches *switches, uint32_t vm, uint32_t tid)
{
	const uint32_t *pid = vp_map_find(&switches->pid_of, guest_switches_key_of(vm, tid));

	return pid ? *pid : 0;
}
