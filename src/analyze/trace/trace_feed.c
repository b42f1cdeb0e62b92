/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/trace_feed.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/common/guest_trace.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/records.h"
#include "schema/trace_records.h"
#include "store/packet.h"

/* Limited, because a guest may invent any number of threads. */
enum { MAX_GUEST_NAMES = 1 << 20 };

static const uint16_t sizes[] = {
#define SIZE_OF(set, system, event, meaning) VP_TRACE_SIZE_##event,
    VP_TRACE_EVENTS(SIZE_OF)};

static bool same_fields(const struct vp_event_class *one, const struct vp_event_class *other)
{
	if (one->fields.count != other->fields.count)
		return false;
	for (size_t i = 0; i < one->fields.count; i++) {
		const struct vp_event_field *a = &one->fields.at[i], *b = &other->fields.at[i];
		if (strcmp(a->name, b->name) || a->shape != b->shape || a->size != b->size)
			return false;
	}
	return true;
}

/* Maps event ids: other versions of vperf may number events differently. */
static void trace_feed_add_class(struct vp_feed *feed, const struct vp_event_class *event,
				 const vp_event_classes *own)
{
	if (event->id - VP_ID_DEFINED >= (int)sizeof(feed->kind_of_id))
		return;
	for (size_t i = 0; i < own->count; i++)
		if (!strcmp(own->at[i].name, event->name) && same_fields(event, &own->at[i]))
			feed->kind_of_id[event->id - VP_ID_DEFINED] = (uint8_t)(i + 1);
}

static struct vp_error *trace_feed_add_classes(struct vp_feed *feed, const char *host)
{
	vp_event_classes defined = {0}, own = {0};
	struct vp_error *error = vp_trace_classes(host, &defined);

	if (!error)
		error = vp_trace_event_classes(&own);
	if (!error)
		vp_vec_each (&defined, event)
			trace_feed_add_class(feed, event, &own);
	if (!error && !defined.count && !feed->by_states)
		error = vp_error_new(
		    "the recording has no events%s",
		    vp_recording_advice(&feed->recording, ": 'vperf record --trace' records them"));
	vp_event_classes_deinit(&own);
	vp_event_classes_deinit(&defined);
	return error;
}

static unsigned streams_of(const struct vp_feed *feed)
{
	return VP_STREAMS(VP_STREAM_TRACE) | (feed->by_states ? VP_STREAMS(VP_STREAM_STATES) : 0);
}

static bool has_domains(const vp_vms *vms)
{
	vp_vec_each (vms, vm)
		if (vm->has_domain)
			return true;
	return false;
}

static bool has_states(const char *host)
{
	VP_AUTO_FREE char *path =
	    vp_stream_find(host, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU});

	return path != NULL;
}

static struct vp_error *expect_states(const char *host)
{
	return has_states(host) ? NULL
				: vp_error_new("the recording has no vCPU states in time order: "
					       "record with --trace or --account-events");
}

static struct vp_error *trace_feed_open_all(const char *directory, struct vp_feed *feed)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);

	VP_TRY(vp_recording_open(directory, &feed->recording, &feed->vms, &feed->notes));
	feed->by_states = has_domains(&feed->vms);
	if (feed->by_states)
		VP_TRY(expect_states(host));
	VP_TRY(trace_feed_add_classes(feed, host));
	VP_TRY(vp_trace_open(host, streams_of(feed), &feed->streams));
	vp_merge_init(&feed->merge, &feed->streams, NULL);
	feed->merging = true;
	return NULL;
}

bool vp_feed_is_recorded(const char *directory, const struct vp_recording *recording,
			 const vp_vms *vms)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);

	return has_domains(vms) ? has_states(host)
				: vp_recording_has_instrument(recording, "trace");
}

struct vp_error *vp_feed_open(const char *directory, struct vp_feed *ret)
{
	*ret = (struct vp_feed){.directory = vp_strdup(directory)};
	struct vp_error *error = trace_feed_open_all(directory, ret);
	if (error)
		vp_feed_close(ret);
	return error;
}

void vp_feed_close(struct vp_feed *feed)
{
	if (feed->merging)
		vp_merge_deinit(&feed->merge);
	vp_trace_close(&feed->streams);
	vp_map_deinit(&feed->comm_of_tid);
	vp_map_deinit(&feed->pid_of_tid);
	vp_map_deinit(&feed->comm_of_guest_tid);
	vp_intern_deinit(&feed->comms);
	vp_recording_deinit(&feed->recording);
	vp_vms_deinit(&feed->vms);
	vp_vec_each (&feed->notes, note)
		free(*note);
	vp_vec_deinit(&feed->notes);
	free(feed->directory);
	*feed = (struct vp_feed){0};
}

static uint64_t trace_feed_guest_key(uint32_t vm, uint32_t tid)
{
	return (uint64_t)vm << 32 | tid;
}

static void trace_feed_learn(struct vp_feed *feed, struct vp_map *map, uint64_t key,
			     const char *comm)
{
	struct vp_buffer clean = {0};
	bool inserted;

	vp_text_clean(comm, strnlen(comm, VP_COMM_SIZE), &clean);
	uint32_t name = vp_intern_string(&feed->comms, vp_buffer_text(&clean));
	*vp_map_insert(map, key, name, &inserted) = name;
	vp_buffer_deinit(&clean);
}

static void update_task(struct vp_feed *feed, const struct vp_task *task)
{
	bool inserted;

	trace_feed_learn(feed, &feed->comm_of_tid, task->tid, task->comm);
	*vp_map_insert(&feed->pid_of_tid, task->tid, task->pid, &inserted) = task->pid;
}

static void trace_feed_update_name(struct vp_feed *feed, const struct vp_record_header *record)
{
	const struct vp_guest_task *guest = (const void *)record;
	const struct vp_task *task = (const void *)record;

	if (record->id == VP_ID_task)
		update_task(feed, task);
	if (record->id == VP_ID_guest_task && feed->comm_of_guest_tid.count < MAX_GUEST_NAMES)
		trace_feed_learn(feed, &feed->comm_of_guest_tid,
				 trace_feed_guest_key(guest->vm, guest->guest_tid), guest->comm);
}

static void note_time(struct vp_feed *feed, uint64_t time)
{
	feed->first = feed->first ? feed->first : time;
	feed->last = time;
}

/* False: not a vCPU state. */
static bool read_span(struct vp_feed *feed, const struct vp_merge_head *head,
		      struct vp_feed_event *ret)
{
	if (!feed->by_states || head->record->id != VP_ID_vcpu_span)
		return false;
	*ret = (struct vp_feed_event){
	    .time = head->time, .pcpu = VP_NO_PCPU, .kind = VP_FEED_SPAN, .header = head->record};
	note_time(feed, head->time);
	return true;
}

/* False: not an event, or it does not have its class's size. */
static bool read_event(struct vp_feed *feed, const struct vp_merge_head *head,
		       struct vp_feed_event *ret)
{
	const struct vp_defined_record *record = (const void *)head->record;
	uint32_t index = head->record->id - VP_ID_DEFINED;

	if (head->record->id < VP_ID_DEFINED || index >= sizeof(feed->kind_of_id) ||
	    !feed->kind_of_id[index])
		return false;
	*ret = (struct vp_feed_event){
	    .time = head->time,
	    .pcpu = vp_stream_cpu(feed->streams.at[head->stream]),
	    .kind = feed->kind_of_id[index] - 1U,
	    .header = head->record,
	};
	if (record->size != sizes[ret->kind]) {
		feed->unreadable++;
		return false;
	}
	feed->counts[ret->kind]++;
	note_time(feed, head->time);
	return true;
}

/* Where no program runs at VM exits, guest threads come from the guest's own events. */
static void note_guests_without_threads(struct vp_feed *feed)
{
	VP_AUTO_FREE char *names = NULL;

	vp_vec_each (&feed->vms, vm) {
		if (vp_vm_is_host(vm) || vp_guest_traces_has(feed->directory, &feed->vms, vm))
			continue;
		char *more = names ? vp_format("%s, %s", names, vm->name) : vp_strdup(vm->name);
		free(names);
		names = more;
	}
	if (names)
		vp_vec_push(&feed->notes,
			    vp_format("the threads of these guests are unknown, because the "
				      "recording does not have their events%s: %s",
				      vp_recording_advice(&feed->recording,
							  " ('vperf record --trace-guests' records "
							  "them by the guest's agent)"),
				      names));
}

static void trace_feed_end(struct vp_feed *feed)
{
	struct vp_health health = {.classes = streams_of(feed)};

	vp_health_add(&feed->streams, &health);
	vp_health_sentences(&health, &feed->recording, &feed->notes);
	vp_health_deinit(&health);
	if (feed->unreadable)
		vp_vec_push(
		    &feed->notes,
		    vp_format("%" PRIu64
			      " events do not match the recording's event classes and were skipped",
			      feed->unreadable));
	if (feed->by_states)
		note_guests_without_threads(feed);
	else if (!feed->counts[VP_TRACE_KIND_sched_switch])
		vp_vec_push(&feed->notes,
			    vp_format("no scheduler events%s: times without a pCPU are unknown",
				      vp_recording_advice(&feed->recording, " (set 'sched')")));
	feed->ended = true;
}

bool vp_feed_next(struct vp_feed *feed, struct vp_feed_event *ret)
{
	const struct vp_merge_head *head;

	while (!feed->ended && (head = vp_merge_next(&feed->merge))) {
		trace_feed_update_name(feed, head->record);
		if (read_span(feed, head, ret) || read_event(feed, head, ret))
			return true;
	}
	if (!feed->ended)
		trace_feed_end(feed);
	return false;
}

uint32_t vp_feed_pid(const struct vp_feed *feed, uint32_t tid)
{
	const uint32_t *pid = vp_map_find(&feed->pid_of_tid, tid);

	return pid ? *pid : 0;
}

const char *vp_feed_comm(const struct vp_feed *feed, uint32_t tid)
{
	const uint32_t *name = vp_map_find(&feed->comm_of_tid, tid);

	if (!tid)
		return "swapper";
	return name ? vp_intern_text(&feed->comms, *name) : NULL;
}

const char *vp_feed_guest_comm(const struct vp_feed *feed, uint32_t vm, uint32_t tid)
{
	const uint32_t *name = vp_map_find(&feed->comm_of_guest_tid, trace_feed_guest_key(vm, tid));

	if (!tid)
		return "swapper"; /* each guest CPU has an idle task with tid 0 */
	return name ? vp_intern_text(&feed->comms, *name) : NULL;
}
