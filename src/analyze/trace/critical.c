/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/critical.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock_text.h"
#include "base/error.h"
#include "base/intern.h"
#include "schema/vm.h"

/* Maximum number of threads that wait for each other; longer paths are cut. */
enum { MAX_DEPTH = 64 };

/* State of the walk from the end of the interval to its start; `stack`: the threads waiting for
 * each other. */
struct walk {
	struct vp_critical *critical;
	const struct vp_thread *stack[MAX_DEPTH];
	unsigned depth;
};

static void critical_resolve(struct walk *walk, const struct vp_thread *thread, uint64_t from,
			     uint64_t to);

static const char *critical_machine_of(struct vp_threads *threads, uint32_t vm)
{
	return vm ? vp_tracks_vm(threads->tracks, vm) : "host";
}

static const char *critical_keep(struct walk *walk, const char *text)
{
	struct vp_intern *texts = &walk->critical->threads->texts;

	return vp_intern_text(texts, vp_intern_string(texts, text));
}

static const char *thread_name(struct walk *walk, const struct vp_thread *thread)
{
	return vp_threads_name(walk->critical->threads, thread->comm, thread->tid);
}

/* Adds a link. Links are added backwards, each directly before the previous one. */
static void critical_put(struct walk *walk, const struct vp_thread *thread,
			 enum vp_critical_kind kind, uint64_t begin, uint64_t end,
			 const char *detail)
{
	struct vp_critical *critical = walk->critical;
	const char *machine = critical_machine_of(critical->threads, thread->vm);
	const char *name = thread_name(walk, thread);
	size_t count = critical->links.count;
	struct vp_critical_link *last = count ? &critical->links.at[count - 1] : NULL;

	if (begin >= end)
		return;
	if (last && last->kind == kind && last->machine == machine && last->thread == name &&
	    last->detail == detail) {
		last->begin = begin;
		return;
	}
	vp_vec_push(&critical->links, ((struct vp_critical_link){.begin = begin,
								 .end = end,
								 .kind = kind,
								 .machine = machine,
								 .thread = name,
								 .detail = detail}));
}

static const char *occupant(struct walk *walk, const struct vp_cpu_segment *segment)
{
	if (!segment->has_tid)
		return NULL;
	return segment->tid ? vp_threads_name(walk->critical->threads, segment->comm, segment->tid)
			    : "idle pCPU";
}

/* Kind of link for a state of the vCPU; `runs`: the thread had the vCPU, otherwise it was
 * queued. */
static enum vp_critical_kind kind_on_vcpu(enum vp_track_state state, bool runs)
{
	switch (state) {
	case VP_TRACK_GUEST:
		return runs ? VP_CRITICAL_GUEST : VP_CRITICAL_QUEUE;
	case VP_TRACK_WORK:
		return VP_CRITICAL_HYPERVISOR;
	case VP_TRACK_PREEMPTED:
		return VP_CRITICAL_STOLEN;
	case VP_TRACK_WAITING:
		return VP_CRITICAL_HYPERVISOR;
	default:
		return VP_CRITICAL_WAKEUP;
	}
}

static const char *who_had(struct walk *walk, enum vp_critical_kind kind,
			   const struct vp_cpu_segment *segment)
{
	return kind == VP_CRITICAL_STOLEN || kind == VP_CRITICAL_WAKEUP ? occupant(walk, segment)
									: NULL;
}

/* Splits a thread's time on a CPU, or in its queue, by the states of that CPU. */
static void split(struct walk *walk, const struct vp_thread *thread, uint32_t number, bool runs,
		  uint64_t from, uint64_t to)
{
	const struct vp_cpu *cpu = vp_threads_cpu(walk->critical->threads, thread->vm, number);
	size_t index = cpu ? vp_cpu_segment_before(cpu, to) : 0;

	for (; to > from && index; index--) {
		const struct vp_cpu_segment *segment = &cpu->segments.at[index - 1];
		uint64_t begin = segment->begin > from ? segment->begin : from;
		uint64_t end = segment->end < to ? segment->end : to;
		if (end <= from)
			break;
		enum vp_critical_kind kind =
		    thread->vm ? kind_on_vcpu(segment->state, runs) : VP_CRITICAL_HOST_QUEUE;
		critical_put(walk, thread, VP_CRITICAL_UNKNOWN, end, to, "no event of its CPU");
		critical_put(walk, thread, kind, begin, end,
			     thread->vm ? who_had(walk, kind, segment) : occupant(walk, segment));
		to = begin;
	}
	critical_put(walk, thread, VP_CRITICAL_UNKNOWN, from, to, "no event of its CPU");
}

static bool is_waiting(const struct walk *walk, const struct vp_thread *thread)
{
	for (unsigned i = 0; i < walk->depth; i++)
		if (walk->stack[i] == thread)
			return true;
	return false;
}

/* The host thread of the vCPU: its wakeups show what the guest's device did. */
static const struct vp_thread *thread_of_vcpu(const struct vp_threads *threads, uint32_t vm,
					      uint32_t number)
{
	const struct vp_cpu *cpu = vp_threads_cpu(threads, vm, number);

	return cpu ? vp_threads_find(threads, 0, cpu->tid) : NULL;
}

/* The last sleep of the vCPU thread in that time that a host thread ended. */
static const struct vp_thread_segment *last_wakeup(const struct vp_thread *vcpu, uint64_t from,
						   uint64_t to)
{
	for (size_t index = vp_thread_segment_before(vcpu, to); index; index--) {
		const struct vp_thread_segment *segment = &vcpu->segments.at[index - 1];
		if (segment->end <= from)
			return NULL;
		if (segment->state == VP_THREAD_ASLEEP && segment->ended && segment->end <= to)
			return segment;
	}
	return NULL;
}

static const char *device_text(struct walk *walk, const char *whose, const struct vp_waker *waker)
{
	VP_AUTO_FREE char *text = vp_format("%s interrupt %" PRIu32, whose, waker->id);

	return critical_keep(walk, text);
}

/* A guest device is emulated by a host thread: continues with that thread. */
static void resolve_device(struct walk *walk, const struct vp_thread *thread,
			   const struct vp_waker *waker, uint64_t from, uint64_t to)
{
	struct vp_threads *threads = walk->critical->threads;
	const struct vp_thread *vcpu = thread_of_vcpu(threads, thread->vm, waker->cpu);
	const struct vp_thread_segment *sleep = vcpu ? last_wakeup(vcpu, from, to) : NULL;
	const struct vp_thread *other = sleep && sleep->waker.kind == VP_WAKER_THREAD
					    ? vp_threads_find(threads, 0, sleep->waker.id)
					    : NULL;

	if (!other || is_waiting(walk, other)) {
		critical_put(walk, thread, VP_CRITICAL_DEVICE, from, to,
			     device_text(walk, "guest's", waker));
		return;
	}
	split(walk, thread, waker->cpu, true, sleep->end, to);
	critical_resolve(walk, other, from, sleep->end);
}

static void resolve_sleep(struct walk *walk, const struct vp_thread *thread,
			  const struct vp_waker *waker, uint64_t from, uint64_t to)
{
	const struct vp_thread *other =
	    waker->kind == VP_WAKER_THREAD
		? vp_threads_find(walk->critical->threads, thread->vm, waker->id)
		: NULL;

	switch (waker->kind) {
	case VP_WAKER_THREAD:
		if (other && !is_waiting(walk, other) && walk->depth < MAX_DEPTH)
			critical_resolve(walk, other, from, to);
		else
			critical_put(walk, thread, VP_CRITICAL_UNKNOWN, from, to,
				     other ? "threads woke each other" : "its waker is unknown");
		return;
	case VP_WAKER_TIMER:
		critical_put(walk, thread, VP_CRITICAL_TIMER, from, to, NULL);
		return;
	case VP_WAKER_DEVICE:
		if (thread->vm)
			resolve_device(walk, thread, waker, from, to);
		else
			critical_put(walk, thread, VP_CRITICAL_DEVICE, from, to,
				     device_text(walk, "host's", waker));
		return;
	case VP_WAKER_SOFTIRQ:
	case VP_WAKER_UNKNOWN:
		critical_put(walk, thread, VP_CRITICAL_UNKNOWN, from, to,
			     "no event for the wakeup");
	}
}

/* Adds the links of one segment between these times; `next`: the following segment, or NULL. */
static void resolve_part(struct walk *walk, const struct vp_thread *thread,
			 const struct vp_thread_segment *segment,
			 const struct vp_thread_segment *next, uint64_t from, uint64_t to)
{
	uint32_t cpu = next && next->state == VP_THREAD_RUNNING ? next->cpu : segment->cpu;

	if (segment->state == VP_THREAD_RUNNING && thread->vm)
		split(walk, thread, segment->cpu, true, from, to);
	else if (segment->state == VP_THREAD_RUNNING)
		critical_put(walk, thread, VP_CRITICAL_HOST, from, to, NULL);
	else if (segment->state == VP_THREAD_RUNNABLE)
		split(walk, thread, cpu, false, from, to);
	else if (!segment->ended)
		critical_put(walk, thread, VP_CRITICAL_UNKNOWN, from, to, "it slept on");
	else
		resolve_sleep(walk, thread, &segment->waker, from, to);
}

/* If `thread` is a vCPU thread that worked up to `to`, continues with the guest thread that had the
 * vCPU then. */
static void critical_resolve(struct walk *walk, const struct vp_thread *thread, uint64_t from,
			     uint64_t to)
{
	const struct vp_thread *inside = vp_threads_inside(walk->critical->threads, thread, to);

	thread = inside && !is_waiting(walk, inside) ? inside : thread;
	size_t index = vp_thread_segment_before(thread, to);

	if (walk->depth == MAX_DEPTH) {
		critical_put(walk, thread, VP_CRITICAL_UNKNOWN, from, to,
			     "too many threads wait for others");
		return;
	}
	walk->stack[walk->depth++] = thread;
	for (; to > from && index; index--) {
		const struct vp_thread_segment *segment = &thread->segments.at[index - 1];
		uint64_t begin = segment->begin > from ? segment->begin : from;
		uint64_t end = segment->end < to ? segment->end : to;
		if (end <= from)
			break;
		critical_put(walk, thread, VP_CRITICAL_UNKNOWN, end, to, "no event of the thread");
		resolve_part(walk, thread, segment,
			     index < thread->segments.count ? segment + 1 : NULL, begin, end);
		to = begin;
	}
	critical_put(walk, thread, VP_CRITICAL_UNKNOWN, from, to, "no event of the thread");
	walk->depth--;
}

static bool critical_is_number(const char *word)
{
	return word[0] && strspn(word, "0123456789") == strlen(word);
}

static bool is_meant(const struct vp_thread *thread, uint32_t vm, const char *word)
{
	if (thread->vm != vm || !vm)
		return false;
	if (critical_is_number(word))
		return strtoull(word, NULL, 10) == thread->tid;
	return thread->comm && !strcmp(thread->comm, word) && thread->segments.count;
}

struct vp_error *vp_critical_choose(struct vp_threads *threads, const char *vm, const char *word,
				    const struct vp_thread **ret)
{
	const struct vp_thread *found = NULL;
	struct vp_buffer several = {0};
	size_t count = 0;

	vp_vec_each (&threads->guests, guest)
		vp_vec_each (&threads->threads, thread) {
			if (strcmp(guest->vm->name, vm) != 0 ||
			    !is_meant(thread, vp_vm_id(guest->vm), word))
				continue;
			found = thread;
			if (count++ < 8)
				vp_buffer_printf(&several, "%s%" PRIu32, several.size ? ", " : "",
						 thread->tid);
		}
	struct vp_error *error = NULL;
	if (!count)
		error = vp_error_usage("option --thread: the recording has no event of a thread "
				       "'%s' of guest '%s'",
				       word, vm);
	else if (count > 1)
		error = vp_error_usage(
		    "option --thread: %zu threads are called '%s' (%s%s): expected the TID of one",
		    count, word, vp_buffer_text(&several), count > 8 ? ", ..." : "");
	vp_buffer_deinit(&several);
	*ret = found;
	return error;
}

struct vp_error *vp_critical_find(struct vp_threads *threads, const struct vp_thread *thread,
				  struct vp_critical *ret)
{
	struct walk walk = {.critical = ret};

	*ret = (struct vp_critical){.threads = threads, .thread = thread};
	if (!thread->segments.count)
		return vp_error_new("the recording has no event of the thread in that time");
	const struct vp_thread_segment *first = &thread->segments.at[0];
	const struct vp_thread_segment *last = &thread->segments.at[thread->segments.count - 1];
	/* The time from which the thread slept or had ended, for an unknown reason. */
	uint64_t end = last->state == VP_THREAD_ASLEEP && !last->ended ? last->begin : last->end;
	ret->from = first->begin > threads->from ? first->begin : threads->from;
	ret->to = end < threads->to ? end : threads->to;
	if (ret->from >= ret->to)
		return vp_error_new("the recording has no events of the thread in that time");
	critical_resolve(&walk, thread, ret->from, ret->to);
	for (size_t i = 0, j = ret->links.count; i + 1 < j; i++) {
		struct vp_critical_link link = ret->links.at[i];
		ret->links.at[i] = ret->links.at[--j];
		ret->links.at[j] = link;
	}
	return NULL;
}

void vp_critical_deinit(struct vp_critical *critical)
{
	vp_vec_deinit(&critical->links);
}

static const char *const kinds[VP_CRITICAL_KINDS] = {
    [VP_CRITICAL_GUEST] = "guest",           [VP_CRITICAL_HYPERVISOR] = "hypervisor",
    [VP_CRITICAL_STOLEN] = "stolen",         [VP_CRITICAL_WAKEUP] = "vcpu-wakeup",
    [VP_CRITICAL_QUEUE] = "guest-queue",     [VP_CRITICAL_HOST] = "host",
    [VP_CRITICAL_HOST_QUEUE] = "host-queue", [VP_CRITICAL_TIMER] = "timer",
    [VP_CRITICAL_DEVICE] = "device",         [VP_CRITICAL_UNKNOWN] = "unknown",
};

static void put_link(const struct vp_critical_link *link, struct vp_table *table)
{
	vp_table_text(table, kinds[link->kind]);
	vp_table_text(table, link->machine);
	vp_table_text(table, link->thread);
	vp_table_text(table, link->detail);
}

static void add_link_columns(struct vp_table *table)
{
	vp_table_column_add(table, "cause", "Cause", "", VP_CELL_TEXT);
	vp_table_column_add(table, "machine", "Machine", "", VP_CELL_TEXT);
	vp_table_column_add(table, "thread", "Thread", "", VP_CELL_TEXT);
	vp_table_column_add(table, "detail", "Detail", "", VP_CELL_TEXT);
}

void vp_critical_chain_table(struct vp_critical *critical, struct vp_table *table)
{
	vp_table_column_add(table, "at_s", "At", "s", VP_CELL_TEXT);
	vp_table_column_add(table, "ns", "Time", "ns", VP_CELL_DURATION);
	add_link_columns(table);
	vp_vec_each (&critical->links, link) {
		char at[VP_CLOCK_TEXT_SIZE];
		vp_clock_text(&critical->clock, link->begin, at);
		struct vp_intern *texts = &critical->threads->texts;
		vp_table_text(table, vp_intern_text(texts, vp_intern_string(texts, at)));
		vp_table_count(table, link->end - link->begin);
		put_link(link, table);
	}
}

struct cause {
	const struct vp_critical_link *first; /* the first one of its links */
	uint64_t ns, count;
};

static int by_cause(const void *one, const void *other)
{
	const struct vp_critical_link *a = ((const struct cause *)one)->first;
	const struct vp_critical_link *b = ((const struct cause *)other)->first;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->machine != b->machine)
		return a->machine < b->machine ? -1 : 1;
	if (a->detail != b->detail)
		return a->detail < b->detail ? -1 : 1;
	return (a > b) - (a < b);
}

static bool critical_is_same(const struct vp_critical_link *a, const struct vp_critical_link *b)
{
	return a->kind == b->kind && a->thread == b->thread && a->machine == b->machine &&
	       a->detail == b->detail;
}

/* Equal lengths: in order of first appearance. */
static int by_length(const void *one, const void *other)
{
	const struct cause *a = one, *b = other;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return (a->first > b->first) - (a->first < b->first);
}

/* Texts are interned, so equal texts have equal pointers. */
static size_t sum_causes(const struct vp_critical *critical, struct cause *causes)
{
	size_t count = 0, kept = 0;

	vp_vec_each (&critical->links, link)
		causes[count++] = (struct cause){link, link->end - link->begin, 1};
	qsort(causes, count, sizeof(*causes), by_cause);
	for (size_t i = 0; i < count; i++) {
		if (kept && critical_is_same(causes[kept - 1].first, causes[i].first)) {
			causes[kept - 1].ns += causes[i].ns;
			causes[kept - 1].count++;
		} else {
			causes[kept++] = causes[i];
		}
	}
	qsort(causes, kept, sizeof(*causes), by_length);
	return kept;
}

void vp_critical_blame_table(struct vp_critical *critical, struct vp_table *table)
{
	VP_AUTO_FREE struct cause *causes = vp_alloc((critical->links.count + 1) * sizeof(*causes));
	size_t count = sum_causes(critical, causes);
	double whole = (double)(critical->to - critical->from);

	vp_table_column_add(table, "ns", "Time", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "percent", "%", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "links", "Links", "", VP_CELL_COUNT);
	add_link_columns(table);
	for (size_t i = 0; i < count; i++) {
		vp_table_count(table, causes[i].ns);
		vp_table_percent(table, 100.0 * (double)causes[i].ns / whole);
		vp_table_count(table, causes[i].count);
		put_link(causes[i].first, table);
	}
}
