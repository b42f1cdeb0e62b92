/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/table.h"
#include "analyze/trace/sched.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/clock_text.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/records.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *sched_tables_text_of(struct vp_sched *sched, const char *comm, uint32_t tid)
{
	VP_AUTO_FREE char *text = vp_format("%s/%" PRIu32, comm ? comm : "-", tid);

	return vp_intern_text(&sched->texts, vp_intern_string(&sched->texts, text));
}

static void sched_tables_put_vcpu(const struct vp_sched_vcpu *vcpu, struct vp_tracks *tracks,
				  struct vp_table *table)
{
	vp_table_text(table, vp_tracks_vm(tracks, vcpu->vm));
	vp_table_count(table, vcpu->vcpu == VP_VCPU_UNKNOWN ? VP_CELL_NO_COUNT : vcpu->vcpu);
}

static void add_vcpu_columns(struct vp_table *table)
{
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "vcpu", "vCPU", "", VP_CELL_COUNT);
}

static void put_switches(const struct vp_track_switches *switches, struct vp_table *table)
{
	bool known = switches->restarts || switches->total;

	vp_table_count(table, known ? switches->total : VP_CELL_NO_COUNT);
	vp_table_count(table, known ? switches->observed : VP_CELL_NO_COUNT);
	vp_table_count(table, switches->implausible);
}

/* Old keys, up to 0.2. */
static const struct {
	const char *key;
	enum vp_track_state state;
} old_times[] = {{"host_ns", VP_TRACK_WORK},
		 {"stolen_ns", VP_TRACK_PREEMPTED},
		 {"blocked_ns", VP_TRACK_WAITING}};
static const char *const old_counts[] = {"switches_seen", "switches_made", "jumps"};

static void put_old_switches(const struct vp_track_switches *switches, struct vp_table *table)
{
	bool known = switches->restarts || switches->total;

	vp_table_count(table, known ? switches->observed : VP_CELL_NO_COUNT);
	vp_table_count(table, known ? switches->total : VP_CELL_NO_COUNT);
	vp_table_count(table, switches->implausible);
}

void vp_sched_vcpu_table(const struct vp_sched *sched, struct vp_tracks *tracks,
			 struct vp_table *table)
{
	static const char *const least[] = {"tid", "waiting_ns", "waking_ns", "work_ns", NULL};

	table->least = least;
	add_vcpu_columns(table);
	vp_table_column_add(table, "tid", "TID", "", VP_CELL_COUNT);
	vp_table_column_add(table, "guest_ns", "Guest", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "work_ns", "Work", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "steal_ns", "Steal", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "waking_ns", "Waking", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "halted_ns", "Halted", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "waiting_ns", "Waiting", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "exact_ns", "Exact", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "uncertain_ns", "Uncertain", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "exact_percent", "Exact %", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "switches_total", "Switches", "", VP_CELL_COUNT);
	vp_table_column_add(table, "switches_observed", "Observed", "", VP_CELL_COUNT);
	vp_table_column_add(table, "implausible", "Implausible", "", VP_CELL_COUNT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(old_times); i++)
		vp_table_column_add_old(table, old_times[i].key, VP_CELL_DURATION);
	for (size_t i = 0; i < VP_ARRAY_SIZE(old_counts); i++)
		vp_table_column_add_old(table, old_counts[i], VP_CELL_COUNT);
	vp_vec_each (&sched->vcpus, vcpu) {
		const struct vp_track_switches switches =
		    vp_tracks_switches(tracks, vcpu->vm, vcpu->vcpu, vcpu->tid);
		uint64_t guest = vcpu->ns[VP_TRACK_GUEST];
		sched_tables_put_vcpu(vcpu, tracks, table);
		vp_table_count(table, vcpu->tid);
		for (int state = VP_TRACK_GUEST; state < VP_TRACK_STATES; state++)
			vp_table_count(table, vcpu->ns[state] + (state == VP_TRACK_PREEMPTED
								     ? vcpu->ns[VP_TRACK_WAKING]
								     : 0));
		vp_table_count(table, vcpu->exact);
		vp_table_count(table, vcpu->uncertain);
		vp_table_percent(table, guest ? 100.0 * (double)vcpu->exact / (double)guest : 0);
		put_switches(&switches, table);
		for (size_t i = 0; i < VP_ARRAY_SIZE(old_times); i++)
			vp_table_count(table, vcpu->ns[old_times[i].state]);
		put_old_switches(&switches, table);
	}
}

static uint64_t sched_tables_time_of(const struct vp_sched_thread *thread)
{
	return thread->exact + thread->uncertain + thread->host + thread->stolen;
}

/* A thread, and its largest theft; or NULL. */
struct order {
	const struct vp_sched_thread *thread;
	const struct vp_sched_theft *theft;
};

/* Equal times: in order of first appearance. */
static int sched_tables_by_time(const void *one, const void *other)
{
	const struct vp_sched_thread *first = ((const struct order *)one)->thread;
	const struct vp_sched_thread *second = ((const struct order *)other)->thread;
	uint64_t a = sched_tables_time_of(first), b = sched_tables_time_of(second);

	return a != b ? (a < b) - (a > b) : (first > second) - (first < second);
}

static struct order *order_of(const struct vp_sched *sched)
{
	struct order *order = vp_alloc(sched->threads.count * sizeof(*order) + 1);

	for (size_t i = 0; i < sched->threads.count; i++)
		order[i] = (struct order){&sched->threads.at[i], NULL};
	vp_vec_each (&sched->thefts, theft) {
		struct order *its = &order[theft->thread];
		if (!its->theft || its->theft->ns < theft->ns)
			its->theft = theft;
	}
	qsort(order, sched->threads.count, sizeof(*order), sched_tables_by_time);
	return order;
}

void vp_sched_thread_table(struct vp_sched *sched, struct vp_tracks *tracks, struct vp_table *table)
{
	static const char *const least[] = {"uncertain_ns", "pid", "work_ns", "thief_ns", NULL};
	VP_AUTO_FREE struct order *order = order_of(sched);

	table->least = least;
	add_vcpu_columns(table);
	vp_table_column_add(table, "pid", "PID", "", VP_CELL_COUNT);
	vp_table_column_add(table, "tid", "TID", "", VP_CELL_COUNT);
	vp_table_column_add(table, "comm", "Thread", "", VP_CELL_TEXT);
	vp_table_column_add(table, "exact_ns", "On CPU", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "uncertain_ns", "Uncertain", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "work_ns", "Work", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "steal_ns", "Steal", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "thief_ns", "Most", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "thief", "By", "", VP_CELL_TEXT);
	vp_table_column_add_old(table, "host_ns", VP_CELL_DURATION);
	vp_table_column_add_old(table, "stolen_ns", VP_CELL_DURATION);
	for (size_t i = 0; i < sched->threads.count; i++) {
		const struct vp_sched_thread *thread = order[i].thread;
		const struct vp_sched_theft *theft = order[i].theft;
		sched_tables_put_vcpu(&sched->vcpus.at[thread->vcpu], tracks, table);
		vp_table_count(table, thread->pid);
		vp_table_count(table, thread->tid);
		vp_table_text(table, thread->comm);
		vp_table_count(table, thread->exact);
		vp_table_count(table, thread->uncertain);
		vp_table_count(table, thread->host);
		vp_table_count(table, thread->stolen);
		vp_table_count(table, theft ? theft->ns : 0);
		vp_table_text(table, theft ? vp_tracks_host_thread(tracks, theft->tid, theft->comm)
					   : NULL);
		vp_table_count(table, thread->host);
		vp_table_count(table, thread->stolen);
	}
}

/* From the first to the last nonempty bucket. */
void vp_sched_wait_table(const struct vp_sched *sched, struct vp_table *table)
{
	int first = 0, last = VP_SCHED_BUCKETS - 1;

	vp_table_column_add(table, "from_ns", "From", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "wakeups", "Wakeups", "", VP_CELL_COUNT);
	vp_table_column_add(table, "preemptions", "Preemptions", "", VP_CELL_COUNT);
	while (first <= last && !sched->woken[first] && !sched->preempted[first])
		first++;
	while (last >= first && !sched->woken[last] && !sched->preempted[last])
		last--;
	for (int i = first; i <= last; i++) {
		vp_table_count(table, i ? 1ULL << i : 0);
		vp_table_count(table, sched->woken[i]);
		vp_table_count(table, sched->preempted[i]);
	}
}

void vp_sched_worst_table(struct vp_sched *sched, struct vp_tracks *tracks, struct vp_table *table)
{
	static const char *const least[] = {"after", "guest_thread", NULL};

	table->least = least;
	add_vcpu_columns(table);
	vp_table_column_add(table, "ns", "Waited", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "after", "After", "", VP_CELL_TEXT);
	vp_table_column_add(table, "at_s", "At", "s", VP_CELL_TEXT);
	vp_table_column_add(table, "guest_thread", "Guest thread", "", VP_CELL_TEXT);
	vp_table_column_add(table, "thief", "Thief", "", VP_CELL_TEXT);
	vp_vec_each (&sched->waits, wait) {
		char at[VP_CLOCK_TEXT_SIZE];
		vp_clock_text(&sched->clock, wait->begin, at);
		sched_tables_put_vcpu(&sched->vcpus.at[wait->vcpu], tracks, table);
		vp_table_count(table, wait->ns);
		vp_table_text(table, wait->woken ? "wakeup" : "preemption");
		vp_table_text(table,
			      vp_intern_text(&sched->texts, vp_intern_string(&sched->texts, at)));
		vp_table_text(table, wait->has_guest ? sched_tables_text_of(sched, wait->guest_comm,
									    wait->guest_tid)
						     : NULL);
		vp_table_text(table,
			      wait->has_thief
				  ? vp_tracks_host_thread(tracks, wait->thief_tid, wait->thief_comm)
				  : NULL);
	}
}
