/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/guest_sched.h"

#include <stdlib.h>

#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/clock_text.h"
#include "base/intern.h"
#include "base/macros.h"

/* Time of a vCPU between two times, by state, and its largest theft. */
struct split {
	uint64_t ns[VP_TRACK_STATES];
	const struct vp_cpu_segment *theft;
	uint64_t theft_ns;
};

static void split_time(const struct vp_threads *threads, uint32_t vm, uint32_t vcpu, uint64_t from,
		       uint64_t to, struct split *ret)
{
	const struct vp_cpu *cpu = vp_threads_cpu(threads, vm, vcpu);

	*ret = (struct split){0};
	for (size_t index = cpu ? vp_cpu_segment_before(cpu, to) : 0; index; index--) {
		const struct vp_cpu_segment *segment = &cpu->segments.at[index - 1];
		uint64_t begin = segment->begin > from ? segment->begin : from;
		uint64_t end = segment->end < to ? segment->end : to;
		if (end <= from)
			break;
		ret->ns[segment->state] += end - begin;
		if (segment->has_tid && segment->tid && end - begin > ret->theft_ns) {
			ret->theft = segment;
			ret->theft_ns = end - begin;
		}
	}
}

static uint64_t not_on_pcpu(const struct split *split)
{
	return split->ns[VP_TRACK_PREEMPTED] + split->ns[VP_TRACK_WAKING] +
	       split->ns[VP_TRACK_HALTED] + split->ns[VP_TRACK_WAITING];
}

/* The vCPU of a segment. A runnable thread belongs to the queue of the vCPU on which it runs
 * next. */
static uint32_t guest_sched_cpu_of(const struct vp_thread *thread,
				   const struct vp_thread_segment *segment)
{
	bool is_last = segment + 1 == thread->segments.at + thread->segments.count;

	return !is_last && segment[1].state == VP_THREAD_RUNNING ? segment[1].cpu : segment->cpu;
}

static void guest_sched_add_part(struct vp_guest_sched *sched, const struct vp_thread *thread,
				 const struct vp_thread_segment *segment,
				 struct vp_guest_time *time)
{
	const struct vp_threads *threads = sched->threads;
	uint64_t begin = segment->begin > threads->from ? segment->begin : threads->from;
	uint64_t end = segment->end < threads->to ? segment->end : threads->to;
	struct split split;

	if (segment->state == VP_THREAD_ASLEEP) {
		time->asleep += end - begin;
		return;
	}
	split_time(threads, thread->vm, guest_sched_cpu_of(thread, segment), begin, end, &split);
	if (segment->state == VP_THREAD_RUNNING) {
		time->on_cpu += split.ns[VP_TRACK_GUEST];
		time->host += split.ns[VP_TRACK_WORK];
	} else {
		time->runnable += split.ns[VP_TRACK_GUEST] + split.ns[VP_TRACK_WORK];
	}
	time->off += not_on_pcpu(&split);
	if (split.theft_ns > time->thief_ns) {
		time->thief_ns = split.theft_ns;
		time->thief = vp_threads_name(sched->threads, split.theft->comm, split.theft->tid);
	}
}

/*
 * The vCPU's wait for a pCPU, if the vCPU was woken for the interrupt that then woke the thread at
 * `time`: between the two, it was in guest mode only once. NULL: the vCPU was awake before.
 */
static const struct vp_cpu_segment *woken_for(const struct vp_threads *threads, uint32_t vm,
					      uint32_t vcpu, uint64_t time)
{
	const struct vp_cpu *cpu = vp_threads_cpu(threads, vm, vcpu);
	bool in_guest = false;

	for (size_t index = cpu ? vp_cpu_segment_before(cpu, time) : 0; index; index--) {
		const struct vp_cpu_segment *segment = &cpu->segments.at[index - 1];
		if (segment->state == VP_TRACK_WAKING)
			return segment;
		if (segment->state == VP_TRACK_GUEST && in_guest)
			return NULL;
		in_guest |= segment->state == VP_TRACK_GUEST;
		if (segment->state != VP_TRACK_GUEST && segment->state != VP_TRACK_WORK)
			return NULL;
	}
	return NULL;
}

static void keep_worst(struct vp_guest_sched *sched, const struct vp_wakeup *wakeup)
{
	size_t at = sched->worst.count;

	if (at == sched->max_worst && (!at || sched->worst.at[at - 1].ns >= wakeup->ns))
		return;
	if (at == sched->max_worst)
		at--;
	else
		vp_vec_push(&sched->worst, *wakeup);
	for (; at && sched->worst.at[at - 1].ns < wakeup->ns; at--)
		sched->worst.at[at] = sched->worst.at[at - 1];
	sched->worst.at[at] = *wakeup;
}

static uint32_t guest_sched_bucket_of(uint64_t ns)
{
	uint32_t bucket = 0;

	while (ns > 1 && bucket < VP_GUEST_SCHED_BUCKETS - 1) {
		ns >>= 1;
		bucket++;
	}
	return bucket;
}

static void add_wakeup(struct vp_guest_sched *sched, const struct vp_thread *thread,
		       const struct vp_thread_segment *segment)
{
	struct vp_wakeup wakeup = {.thread = thread, .segment = segment, .begin = segment->begin};
	const struct vp_cpu_segment *waking = NULL;
	struct split split;

	if (segment->waker.kind != VP_WAKER_THREAD)
		waking = woken_for(sched->threads, thread->vm, segment->waker.cpu, segment->begin);
	if (waking) {
		wakeup.begin = waking->begin;
		wakeup.segments[VP_WAKEUP_VCPU] = waking->end - waking->begin;
		wakeup.segments[VP_WAKEUP_INJECTION] = segment->begin - waking->end;
	}
	split_time(sched->threads, thread->vm, guest_sched_cpu_of(thread, segment), segment->begin,
		   segment->end, &split);
	uint64_t halted = split.ns[VP_TRACK_HALTED] + split.ns[VP_TRACK_WAITING];
	wakeup.segments[VP_WAKEUP_VCPU] += split.ns[VP_TRACK_WAKING];
	wakeup.segments[VP_WAKEUP_INJECTION] += halted;
	wakeup.segments[VP_WAKEUP_SCHEDULING] =
	    segment->end - segment->begin - halted - split.ns[VP_TRACK_WAKING];
	wakeup.ns = segment->end - wakeup.begin;
	sched->whole[guest_sched_bucket_of(wakeup.ns)]++;
	for (int i = 0; i < VP_WAKEUP_PARTS; i++)
		if (wakeup.segments[i])
			sched->by_part[i][guest_sched_bucket_of(wakeup.segments[i])]++;
	keep_worst(sched, &wakeup);
}

static bool is_whole_wakeup(const struct vp_threads *threads,
			    const struct vp_thread_segment *segment)
{
	return segment->state == VP_THREAD_RUNNABLE && segment->woken && segment->ended &&
	       segment->begin >= threads->from && segment->end <= threads->to;
}

void vp_guest_sched_sum(struct vp_guest_sched *sched)
{
	vp_vec_each (&sched->threads->threads, thread) {
		struct vp_guest_time time = {.thread = thread};
		if (!thread->vm || !thread->segments.count)
			continue;
		vp_vec_each (&thread->segments, segment) {
			guest_sched_add_part(sched, thread, segment, &time);
			if (is_whole_wakeup(sched->threads, segment))
				add_wakeup(sched, thread, segment);
		}
		vp_vec_push(&sched->times, time);
	}
}

void vp_guest_sched_deinit(struct vp_guest_sched *sched)
{
	vp_vec_deinit(&sched->times);
	vp_vec_deinit(&sched->worst);
}

static uint64_t awake(const struct vp_guest_time *time)
{
	return time->on_cpu + time->host + time->runnable + time->off;
}

static int by_awake(const void *one, const void *other)
{
	const struct vp_guest_time *first = one, *second = other;
	uint64_t a = awake(first), b = awake(second);

	if (a != b)
		return a < b ? 1 : -1;
	return (first->thread > second->thread) - (first->thread < second->thread);
}

static void add_thread_columns(struct vp_table *table)
{
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "tid", "TID", "", VP_CELL_COUNT);
	vp_table_column_add(table, "comm", "Thread", "", VP_CELL_TEXT);
}

static void guest_sched_put_thread(const struct vp_guest_sched *sched,
				   const struct vp_thread *thread, struct vp_table *table)
{
	vp_table_text(table, vp_tracks_vm(sched->threads->tracks, thread->vm));
	vp_table_count(table, thread->tid);
	vp_table_text(table, thread->comm);
}

void vp_guest_sched_thread_table(struct vp_guest_sched *sched, struct vp_table *table)
{
	static const char *const least[] = {"work_ns", "theft_ns", "off_ns", NULL};

	table->least = least;
	add_thread_columns(table);
	vp_table_column_add(table, "on_cpu_ns", "On CPU", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "work_ns", "Work", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "runnable_ns", "Runnable", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "off_ns", "vCPU off", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "asleep_ns", "Asleep", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "theft_ns", "Longest", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "thief", "by", "", VP_CELL_TEXT);
	vp_table_column_add_old(table, "host_ns", VP_CELL_DURATION);
	if (sched->times.count)
		qsort(sched->times.at, sched->times.count, sizeof(*sched->times.at), by_awake);
	vp_vec_each (&sched->times, time) {
		guest_sched_put_thread(sched, time->thread, table);
		vp_table_count(table, time->on_cpu);
		vp_table_count(table, time->host);
		vp_table_count(table, time->runnable);
		vp_table_count(table, time->off);
		vp_table_count(table, time->asleep);
		vp_table_count(table, time->thief_ns);
		vp_table_text(table, time->thief);
		vp_table_count(table, time->host);
	}
}

static bool has_any(const struct vp_guest_sched *sched, int bucket)
{
	uint64_t any = sched->whole[bucket];

	for (int i = 0; i < VP_WAKEUP_PARTS; i++)
		any |= sched->by_part[i][bucket];
	return any;
}

/* From the first to the last nonempty bucket. */
void vp_guest_sched_wakeup_table(const struct vp_guest_sched *sched, struct vp_table *table)
{
	int first = 0, last = VP_GUEST_SCHED_BUCKETS - 1;

	vp_table_column_add(table, "from_ns", "From", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "wakeups", "Wakeups", "", VP_CELL_COUNT);
	vp_table_column_add(table, "vcpu", "vCPU wakeup", "", VP_CELL_COUNT);
	vp_table_column_add(table, "injection", "Injection", "", VP_CELL_COUNT);
	vp_table_column_add(table, "scheduling", "Scheduling", "", VP_CELL_COUNT);
	while (first <= last && !has_any(sched, first))
		first++;
	while (last >= first && !has_any(sched, last))
		last--;
	for (int i = first; i <= last; i++) {
		vp_table_count(table, i ? 1ULL << i : 0);
		vp_table_count(table, sched->whole[i]);
		for (int segment = 0; segment < VP_WAKEUP_PARTS; segment++)
			vp_table_count(table, sched->by_part[segment][i]);
	}
}

static const char *waker_text(struct vp_guest_sched *sched, const struct vp_wakeup *wakeup)
{
	static const char *const kinds[] = {[VP_WAKER_TIMER] = "timer",
					    [VP_WAKER_DEVICE] = "device",
					    [VP_WAKER_SOFTIRQ] = "softirq"};
	const struct vp_waker *waker = &wakeup->segment->waker;
	const struct vp_thread *thread =
	    waker->kind == VP_WAKER_THREAD
		? vp_threads_find(sched->threads, wakeup->thread->vm, waker->id)
		: NULL;

	if (waker->kind == VP_WAKER_THREAD)
		return vp_threads_name(sched->threads, thread ? thread->comm : NULL, waker->id);
	return kinds[waker->kind];
}

void vp_guest_sched_worst_table(struct vp_guest_sched *sched, struct vp_table *table)
{
	struct vp_intern *texts = &sched->threads->texts;

	add_thread_columns(table);
	vp_table_column_add(table, "ns", "Latency", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "vcpu_ns", "vCPU wakeup", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "injection_ns", "Injection", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "scheduling_ns", "Scheduling", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "at_s", "At", "s", VP_CELL_TEXT);
	vp_table_column_add(table, "waker", "Woken by", "", VP_CELL_TEXT);
	vp_vec_each (&sched->worst, wakeup) {
		char at[VP_CLOCK_TEXT_SIZE];
		vp_clock_text(&sched->clock, wakeup->begin, at);
		guest_sched_put_thread(sched, wakeup->thread, table);
		vp_table_count(table, wakeup->ns);
		for (int i = 0; i < VP_WAKEUP_PARTS; i++)
			vp_table_count(table, wakeup->segments[i]);
		vp_table_text(table, vp_intern_text(texts, vp_intern_string(texts, at)));
		vp_table_text(table, waker_text(sched, wakeup));
	}
}
