/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/common/filter.h"
#include "analyze/trace/trace_feed.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/search.h"
#include "base/text.h"
#include "schema/event_class.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"
#include "timeline/merge.h"

enum { MAX_SEGMENTS = 1 << 25, MAX_THREADS = 1 << 20, EVENTS_AT_ONCE = 1 << 16, DEPTH = 4 };
/* Maximum time from the end of an interrupt to its softirqs. */
#define AT_ONCE_NS 5000
/* Softirqs by number: include/linux/interrupt.h. */
enum { SOFTIRQ_TIMER = 1, SOFTIRQ_NET_TX, SOFTIRQ_NET_RX, SOFTIRQ_BLOCK, SOFTIRQ_HRTIMER = 8 };
/* Bits of prev_state that mean sleeping or exiting; preempted threads have another bit. */
#define NOT_RUNNABLE 0xff

static uint64_t threads_key_of(uint32_t vm, uint32_t number)
{
	return (uint64_t)vm << 32 | number;
}

static struct vp_thread *threads_thread_of(struct vp_threads *threads, uint32_t vm, uint32_t tid)
{
	const uint32_t *index = vp_map_find(&threads->thread_of, threads_key_of(vm, tid));
	bool inserted;

	if (!index && threads->threads.count == MAX_THREADS)
		return NULL;
	if (!index) {
		index = vp_map_insert(&threads->thread_of, threads_key_of(vm, tid),
				      (uint32_t)threads->threads.count, &inserted);
		vp_vec_push(&threads->threads, ((struct vp_thread){.vm = vm, .tid = tid}));
	}
	return &threads->threads.at[*index];
}

static struct vp_cpu *threads_cpu_of(struct vp_threads *threads, uint32_t vm, uint32_t number)
{
	bool inserted;
	uint32_t index = *vp_map_insert(&threads->cpu_of, threads_key_of(vm, number),
					(uint32_t)threads->cpus.count, &inserted);

	if (inserted)
		vp_vec_push(&threads->cpus, ((struct vp_cpu){.vm = vm, .number = number}));
	return &threads->cpus.at[index];
}

const struct vp_thread *vp_threads_find(const struct vp_threads *threads, uint32_t vm, uint32_t tid)
{
	const uint32_t *index = vp_map_find(&threads->thread_of, threads_key_of(vm, tid));

	return index ? &threads->threads.at[*index] : NULL;
}

const struct vp_cpu *vp_threads_cpu(const struct vp_threads *threads, uint32_t vm, uint32_t number)
{
	const uint32_t *index = vp_map_find(&threads->cpu_of, threads_key_of(vm, number));

	return index ? &threads->cpus.at[*index] : NULL;
}

size_t vp_thread_segment_before(const struct vp_thread *thread, uint64_t time)
{
	return VP_FIRST(i, thread->segments.count, thread->segments.at[i].begin >= time);
}

size_t vp_cpu_segment_before(const struct vp_cpu *cpu, uint64_t time)
{
	return VP_FIRST(i, cpu->segments.count, cpu->segments.at[i].begin >= time);
}

/* Index + 1 of the last slice that begins at or before `time`. */
static size_t turn_at(const struct vp_cpu *cpu, uint64_t time)
{
	return VP_FIRST(i, cpu->slices.count, cpu->slices.at[i].begin > time);
}

const struct vp_thread *vp_threads_inside(const struct vp_threads *threads,
					  const struct vp_thread *thread, uint64_t time)
{
	const uint32_t *index = thread->vm ? NULL : vp_map_find(&threads->vcpu_of_tid, thread->tid);
	const struct vp_cpu *cpu = index ? &threads->cpus.at[*index] : NULL;
	size_t slice = cpu ? turn_at(cpu, time) : 0;

	return slice && cpu->slices.at[slice - 1].tid
		   ? vp_threads_find(threads, cpu->vm, cpu->slices.at[slice - 1].tid)
		   : NULL;
}

const char *vp_threads_name(struct vp_threads *threads, const char *comm, uint32_t tid)
{
	VP_AUTO_FREE char *text = vp_format("%s/%" PRIu32, comm ? comm : "-", tid);

	return vp_intern_text(&threads->texts, vp_intern_string(&threads->texts, text));
}

/* Ends the current state. Streams that are damaged may be out of order. */
static void end_part(struct vp_threads *threads, struct vp_thread *thread, uint64_t now, bool ended)
{
	struct vp_thread_segment segment = thread->now;

	segment.end = now;
	segment.ended = ended;
	if (!thread->known || segment.begin >= segment.end || segment.end <= threads->from ||
	    segment.begin >= threads->to || threads->kept == MAX_SEGMENTS)
		return;
	vp_vec_push(&thread->segments, segment);
	threads->kept++;
}

static void begin_part(struct vp_threads *threads, struct vp_thread *thread,
		       enum vp_thread_state state, uint32_t cpu, uint64_t now)
{
	if (thread->known && state == VP_THREAD_RUNNABLE && thread->now.state == VP_THREAD_ASLEEP)
		thread->now.waker = thread->waker;
	end_part(threads, thread, now, true);
	thread->known = true;
	thread->now = (struct vp_thread_segment){.begin = now, .state = state, .cpu = cpu};
}

/* Nested interrupts of a CPU, innermost last. */
struct context {
	struct vp_waker interrupts[DEPTH];
	unsigned depth;
	uint64_t left; /* end of the last interrupt */
	uint32_t tid;  /* current thread of the CPU */
	bool known;
};
struct contexts {
	VP_VEC(struct context) of_cpu;
};

static struct context *context_of(struct contexts *contexts, uint32_t cpu)
{
	enum { MAX_CPUS = 1 << 16 };

	if (cpu >= MAX_CPUS)
		return NULL;
	while (contexts->of_cpu.count <= cpu)
		vp_vec_push(&contexts->of_cpu, (struct context){0});
	return &contexts->of_cpu.at[cpu];
}

static void threads_enter(struct context *context, enum vp_waker_kind kind, uint64_t id,
			  uint32_t cpu)
{
	if (context && context->depth < DEPTH)
		context->interrupts[context->depth] =
		    (struct vp_waker){.kind = kind, .id = (uint32_t)id, .cpu = cpu};
	if (context)
		context->depth += context->depth < DEPTH;
}

static void threads_leave(struct context *context, uint64_t now)
{
	if (!context)
		return;
	if (context->depth)
		context->depth--;
	if (context->interrupts[context->depth].kind != VP_WAKER_THREAD)
		context->left = now;
}

static enum vp_waker_kind kind_of_softirq(uint64_t number)
{
	if (number == SOFTIRQ_TIMER || number == SOFTIRQ_HRTIMER)
		return VP_WAKER_TIMER;
	return number == SOFTIRQ_BLOCK || number == SOFTIRQ_NET_RX || number == SOFTIRQ_NET_TX
		   ? VP_WAKER_DEVICE
		   : VP_WAKER_SOFTIRQ;
}

/* Packets sent by a local thread are received in a softirq that runs in the thread's context as
 * soon as it enables softirqs; packets of a device, in a softirq right after the device's
 * interrupt. */
static void enter_softirq(struct context *context, uint64_t number, uint32_t tid, uint32_t cpu,
			  uint64_t now)
{
	bool is_net = number == SOFTIRQ_NET_RX || number == SOFTIRQ_NET_TX;

	if (is_net && tid && context && !context->depth && now - context->left > AT_ONCE_NS)
		threads_enter(context, VP_WAKER_THREAD, tid, cpu);
	else
		threads_enter(context, kind_of_softirq(number), number, cpu);
}

static struct vp_waker waker_of(const struct context *context, uint32_t tid, uint32_t cpu)
{
	if (context && context->depth)
		return context->interrupts[context->depth - 1];
	return (struct vp_waker){
	    .kind = tid ? VP_WAKER_THREAD : VP_WAKER_UNKNOWN, .id = tid, .cpu = cpu};
}

static void threads_begin_turn(struct vp_threads *threads, uint32_t vm, uint32_t number,
			       uint64_t now, uint32_t tid)
{
	struct vp_cpu *cpu = threads_cpu_of(threads, vm, number);

	if (now >= threads->to || threads->kept == MAX_SEGMENTS)
		return;
	if (cpu->slices.count && now <= threads->from) { /* only the last one matters */
		cpu->slices.at[cpu->slices.count - 1] = (struct vp_cpu_slice){now, tid};
		return;
	}
	vp_vec_push(&cpu->slices, ((struct vp_cpu_slice){now, tid}));
	threads->kept++;
}

static void threads_take_switch(struct vp_threads *threads, uint32_t vm, uint32_t cpu, uint64_t now,
				uint32_t prev, bool runnable, uint32_t next)
{
	struct vp_thread *leaves = prev ? threads_thread_of(threads, vm, prev) : NULL;

	if (leaves)
		begin_part(threads, leaves, runnable ? VP_THREAD_RUNNABLE : VP_THREAD_ASLEEP, cpu,
			   now);
	struct vp_thread *comes = next ? threads_thread_of(threads, vm, next) : NULL;
	if (comes)
		begin_part(threads, comes, VP_THREAD_RUNNING, cpu, now);
	if (vm)
		threads_begin_turn(threads, vm, cpu, now, next);
}

/* Ends the thread's sleep. */
static void wake(struct vp_threads *threads, uint32_t vm, uint32_t tid, struct vp_waker waker,
		 uint32_t cpu, uint64_t now)
{
	struct vp_thread *thread = threads_thread_of(threads, vm, tid);

	if (!thread)
		return;
	if (thread->known && thread->now.state != VP_THREAD_ASLEEP) {
		if (thread->now.state == VP_THREAD_RUNNABLE)
			thread->now.cpu = cpu; /* sched_wakeup after sched_waking */
		return;
	}
	thread->waker = waker;
	begin_part(threads, thread, VP_THREAD_RUNNABLE, cpu, now);
	thread->now.woken = true;
	thread->now.waker = waker;
}

static void take_host_event(struct vp_threads *threads, struct contexts *contexts,
			    const struct vp_feed_event *event)
{
	const struct vp_trace_sched_switch *change = event->sched_switch;
	const struct vp_trace_sched_wakeup *woken = event->sched_wakeup;
	struct context *context = context_of(contexts, event->pcpu);

	switch (event->kind) {
	case VP_TRACE_KIND_sched_switch:
		threads_take_switch(threads, threads->host, event->pcpu, event->time,
				    change->prev_tid, change->preempted || !change->prev_state,
				    change->next_tid);
		break;
	case VP_TRACE_KIND_sched_wakeup:
	case VP_TRACE_KIND_sched_wakeup_new:
		wake(threads, threads->host, woken->woken_tid,
		     waker_of(context, woken->tid, event->pcpu), woken->target_cpu, event->time);
		break;
	case VP_TRACE_KIND_irq_handler_entry:
		threads_enter(context, VP_WAKER_DEVICE,
			      ((const struct vp_trace_irq_handler_entry *)event->header)->irq,
			      event->pcpu);
		break;
	case VP_TRACE_KIND_softirq_entry: {
		const struct vp_trace_softirq_entry *entry = (const void *)event->header;
		enter_softirq(context, entry->vec, entry->tid, event->pcpu, event->time);
		break;
	}
	case VP_TRACE_KIND_local_timer_entry:
		threads_enter(context, VP_WAKER_TIMER, 0, event->pcpu);
		break;
	case VP_TRACE_KIND_irq_handler_exit:
	case VP_TRACE_KIND_softirq_exit:
	case VP_TRACE_KIND_local_timer_exit:
		threads_leave(context, event->time);
		break;
	default:
		break;
	}
}

/* Values of a guest event's fields, found by the kernel's field names; texts are thread names. */
struct values {
	uint64_t common_pid, prev_pid, prev_state, next_pid, pid, target_cpu, irq, vec;
};

static bool read_values(const struct vp_event_class *class, const struct vp_defined_record *record,
			struct values *ret)
{
	const struct {
		const char *name;
		uint64_t *into;
	} wanted[] = {{"common_pid", &ret->common_pid},
		      {"prev_pid", &ret->prev_pid},
		      {"prev_state", &ret->prev_state},
		      {"next_pid", &ret->next_pid},
		      {"pid", &ret->pid},
		      {"target_cpu", &ret->target_cpu},
		      {"irq", &ret->irq},
		      {"vec", &ret->vec}};
	struct vp_cursor fields = vp_event_fields(record);

	*ret = (struct values){0};
	vp_vec_each (&class->fields, field) {
		struct vp_event_value value;
		if (!vp_event_next_value(&fields, field, &value))
			return false;
		for (size_t i = 0; field->shape == VP_EVENT_INTEGER && i < VP_ARRAY_SIZE(wanted);
		     i++)
			if (!strcmp(field->name, wanted[i].name))
				*wanted[i].into = value.number;
	}
	return true;
}

/* State of reading a guest's trace. */
struct guest {
	struct vp_threads *threads;
	uint32_t vm;
	const vp_event_classes *classes;
	struct contexts contexts;
};

static void threads_update_name(void *context, uint32_t tid, struct vp_slice comm)
{
	struct guest *guest = context;
	struct vp_thread *thread = tid ? threads_thread_of(guest->threads, guest->vm, tid) : NULL;
	struct vp_buffer clean = {0};

	if (!thread)
		return;
	vp_text_clean(comm.bytes, strnlen(comm.bytes, comm.size), &clean);
	thread->comm =
	    vp_intern_text(&guest->threads->texts,
			   vp_intern_string(&guest->threads->texts, vp_buffer_text(&clean)));
	vp_buffer_deinit(&clean);
}

static bool threads_ends_in(const char *name, const char *end)
{
	size_t size = strlen(name), length = strlen(end);

	return size >= length && !strcmp(name + size - length, end);
}

static void take_interrupt(struct context *context, const char *name, const struct values *values,
			   uint32_t cpu, uint64_t now)
{
	if (threads_ends_in(name, "_exit")) {
		threads_leave(context, now);
	} else if (!strcmp(name, "irq:irq_handler_entry")) {
		threads_enter(context, VP_WAKER_DEVICE, values->irq, cpu);
	} else if (!strcmp(name, "irq:softirq_entry")) {
		enter_softirq(context, values->vec, (uint32_t)values->common_pid, cpu, now);
	} else if (!strcmp(name, "irq_vectors:local_timer_entry")) {
		threads_enter(context, VP_WAKER_TIMER, 0, cpu);
	} else if (threads_ends_in(name, "_entry")) { /* an IPI: the sender is unknown */
		threads_enter(context, VP_WAKER_UNKNOWN, 0, cpu);
	}
}

static void take_guest_event(struct guest *guest, const struct vp_event_class *class,
			     const struct vp_record_header *record, uint32_t cpu)
{
	struct context *context = context_of(&guest->contexts, cpu);
	const char *name = class->name;
	struct values values;

	if (!read_values(class, (const void *)record, &values))
		return;
	if (!strcmp(name, "sched:sched_switch"))
		threads_take_switch(guest->threads, guest->vm, cpu, record->time,
				    (uint32_t)values.prev_pid, !(values.prev_state & NOT_RUNNABLE),
				    (uint32_t)values.next_pid);
	else if (!strcmp(name, "sched:sched_waking") || !strcmp(name, "sched:sched_wakeup") ||
		 !strcmp(name, "sched:sched_wakeup_new"))
		wake(guest->threads, guest->vm, (uint32_t)values.pid,
		     waker_of(context, (uint32_t)values.common_pid, cpu),
		     (uint32_t)values.target_cpu, record->time);
	else if (!strncmp(name, "irq", 3))
		take_interrupt(context, name, &values, cpu, record->time);
}

static void end_all(struct vp_threads *threads, uint32_t vm, uint64_t now)
{
	vp_vec_each (&threads->threads, thread)
		if (thread->vm == vm)
			end_part(threads, thread, now, false);
}

static struct vp_error *threads_read_guest(struct vp_threads *threads,
					   const struct vp_guest_trace *trace)
{
	struct guest guest = {
	    .threads = threads, .vm = vp_vm_id(trace->vm), .classes = &trace->classes};
	vp_stream_readers streams = {0};
	const struct vp_merge_head *head;
	struct vp_merge merge;
	uint64_t last = 0;

	VP_TRY(vp_trace_open(trace->path, VP_STREAMS_ALL, &streams));
	vp_merge_init(&merge, &streams, NULL);
	while ((head = vp_merge_next(&merge))) {
		const struct vp_event_class *class =
		    head->record->id < VP_ID_DEFINED
			? NULL
			: vp_event_classes_find(guest.classes, head->record->id);
		vp_guest_trace_names(guest.classes, head->record, threads_update_name, &guest);
		if (class)
			take_guest_event(&guest, class, head->record,
					 vp_stream_cpu(streams.at[head->stream]));
		last = head->time;
	}
	end_all(threads, guest.vm, last);
	vp_merge_deinit(&merge);
	vp_trace_close(&streams);
	vp_vec_deinit(&guest.contexts.of_cpu);
	return NULL;
}

static struct vp_error *read_guests(struct vp_threads *threads, const char *directory,
				    const struct vp_threads_options *options)
{
	const char *vm = options->vm;

	const struct vp_feed *feed = vp_tracks_feed(threads->tracks);
	VP_AUTO_FREE bool *chosen = NULL;
	bool any = false;

	VP_TRY(vp_filter_choose_vms(&feed->vms, vm, &chosen));
	VP_TRY(vp_guest_traces_find(directory, &feed->vms, &threads->guests));
	vp_vec_each (&threads->guests, guest) {
		bool is_chosen = chosen[guest->vm - feed->vms.at];
		any |= is_chosen;
		if (is_chosen || options->others)
			VP_TRY(threads_read_guest(threads, guest));
	}
	return any ? NULL
		   : vp_error_new("the recording has no events of %s%s%s%s",
				  vm ? "guest '" : "guests", vm ? vm : "", vm ? "'" : "",
				  vp_recording_advice(&feed->recording,
						      ": 'vperf record --trace-guests' records "
						      "them by the guest's agent"));
}

/* 0: host threads run on pCPUs, and not on vCPUs of a domain. */
static uint32_t host_of(const struct vp_feed *feed)
{
	vp_vec_each (&feed->vms, vm)
		if (feed->by_states && vp_vm_is_host(vm))
			return vp_vm_id(vm);
	return 0;
}

static struct vp_error *read_host(struct vp_threads *threads, const char *directory)
{
	struct contexts contexts = {0};
	struct vp_feed_event event;
	struct vp_feed feed;

	VP_TRY(vp_feed_open(directory, &feed));
	while (vp_feed_next(&feed, &event))
		take_host_event(threads, &contexts, &event);
	end_all(threads, threads->host, feed.last);
	vp_feed_close(&feed);
	vp_vec_each (&threads->threads, thread)
		thread->comm = vp_feed_comm(vp_tracks_feed(threads->tracks), thread->tid);
	vp_vec_deinit(&contexts.of_cpu);
	return NULL;
}

static void threads_take_slice(void *context, const struct vp_track_slice *slice)
{
	struct vp_threads *threads = context;
	bool of_vcpu = slice->track == VP_TRACK_VCPU;
	struct vp_cpu_segment segment = {
	    .begin = slice->begin, .end = slice->end, .state = slice->state};

	if (threads->kept == MAX_SEGMENTS || slice->begin >= slice->end ||
	    (!of_vcpu && slice->pcpu == VP_NO_PCPU))
		return;
	struct vp_cpu *cpu =
	    threads_cpu_of(threads, of_vcpu ? slice->vm : 0, of_vcpu ? slice->vcpu : slice->pcpu);
	if (of_vcpu && cpu->tid != slice->tid) {
		bool inserted;
		uint32_t index = (uint32_t)(cpu - threads->cpus.at);
		cpu->tid = slice->tid;
		*vp_map_insert(&threads->vcpu_of_tid, cpu->tid, index, &inserted) = index;
	}
	segment.has_tid = of_vcpu ? slice->has_thief : true;
	segment.tid = of_vcpu ? slice->thief_tid : slice->tid;
	segment.comm = of_vcpu ? slice->thief_comm : slice->comm;
	vp_vec_push(&cpu->segments, segment);
	threads->kept++;
}

static struct vp_error *threads_open_all(const char *directory,
					 const struct vp_threads_options *options,
					 struct vp_threads *threads)
{
	const struct vp_tracks_options tracks = {.from = options->from,
						 .to = options->to,
						 .take = threads_take_slice,
						 .context = threads};

	VP_TRY(vp_tracks_open(directory, &tracks, &threads->tracks));
	threads->host = host_of(vp_tracks_feed(threads->tracks));
	while (vp_tracks_read(threads->tracks, EVENTS_AT_ONCE))
		;
	VP_TRY(read_host(threads, directory));
	VP_TRY(read_guests(threads, directory, options));
	if (threads->kept == MAX_SEGMENTS)
		vp_vec_push(&threads->notes,
			    vp_strdup("too many slices: some are left out; use --time"));
	return NULL;
}

struct vp_error *vp_threads_open(const char *directory, const struct vp_threads_options *options,
				 struct vp_threads *ret)
{
	*ret = (struct vp_threads){.from = options->from, .to = options->to};
	struct vp_error *error = threads_open_all(directory, options, ret);
	if (error)
		vp_threads_deinit(ret);
	return error;
}

void vp_threads_deinit(struct vp_threads *threads)
{
	vp_vec_each (&threads->threads, thread)
		vp_vec_deinit(&thread->segments);
	vp_vec_each (&threads->cpus, cpu) {
		vp_vec_deinit(&cpu->segments);
		vp_vec_deinit(&cpu->slices);
	}
	vp_vec_each (&threads->notes, note)
		free(*note);
	vp_vec_deinit(&threads->notes);
	vp_vec_deinit(&threads->threads);
	vp_vec_deinit(&threads->cpus);
	vp_map_deinit(&threads->thread_of);
	vp_map_deinit(&threads->cpu_of);
	vp_map_deinit(&threads->vcpu_of_tid);
	vp_guest_traces_deinit(&threads->guests);
	vp_intern_deinit(&threads->texts);
	if (threads->tracks)
		vp_tracks_close(threads->tracks);
	*threads = (struct vp_threads){0};
}
