/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of intervals.bpf.c: maps, subjects, and closing of intervals. */
#ifndef VP_BPF_INTERVALS_STATE_H
#define VP_BPF_INTERVALS_STATE_H

#include "bpf/intervals_sets.bpf.h"
#include "bpf/sched_compat.bpf.h"
#include "schema/records.h"

/* Sized by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_subject);
} subjects SEC(".maps");

/* Slot + 1 of a thread's subject. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

/* Free slots + 1; filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

/* perf counters: index number * pCPUs + pCPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} counters SEC(".maps");

/* By pid of the VMM << 32 | vCPU. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct vp_guest_counters);
} guest_counters SEC(".maps");

/* A BPF ring buffer per pCPU, which needs no store ordering of ours on Arm. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kernel_ring);
} rings SEC(".maps");

struct interval_record {
	struct vp_interval head;
	struct vp_interval_value values[VP_EVENTS_MAX];
};

struct interval_cpu {
	__u32 slot;     /* slot + 1 of the running subject, or 0 */
	__u32 busy;     /* a program is running here: programs that interrupt it do nothing */
	__u32 due;      /* an interrupting program wanted to close an interval */
	__u32 set;      /* the requested set … */
	__u32 on;       /* … and the enabled one */
	__u32 returns;  /* remaining number of times that a subject's set may be resumed */
	__u32 switcher; /* tid of this pCPU's switcher */
	__u32 aside;    /* slot + 1 of the subject that the switcher interrupted, or 0 */
	struct vp_reading now[VP_COUNTERS_MAX];
	struct vp_reading nobody[VP_COUNTERS_MAX]; /* counts that belong to no subject */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct interval_cpu);
} cpus SEC(".maps");

/* Set by the loader. */
const volatile __u32 unit = 0; /* enum vp_interval_unit */
const volatile __u32 per = 0;  /* enum vp_interval_per */
const volatile __u64 width = 0;
/* Without a hypervisor: running on a pCPU counts as running in a guest. */
const volatile __u32 native = 0;
const volatile __u32 n_counters = 0, n_events = 0, n_cpus = 1;
/* Counter that counts the interval's event over the whole interval; VP_COUNTERS_MAX: none. */
const volatile __u32 trigger_counter = VP_COUNTERS_MAX;
const volatile __u32 wants_guest = 0; /* bits of enum vp_guest_count */
const volatile __u64 ring_half = 0, record_size = 0;
const volatile struct vp_event_origin events[VP_EVENTS_MAX] = {};

/* Whether vCPUs that were unknown at the start have intervals, too. */
const volatile __u32 takes_new = 1;

volatile __u32 enabled;
/* Bits of enum vp_interval_count that no program counts here. */
volatile __u64 uncounted;
/* Intervals of VP_UNIT_TIME start at multiples of the width from here. */
volatile __u64 origin;
struct vp_intervals_lost lost;
/* Initial value of a subject. */
const struct vp_subject new_subject = {};

static __always_inline struct interval_cpu *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline struct vp_subject *subject_at(__u32 slot)
{
	__u32 index = slot - 1;

	return slot ? bpf_map_lookup_elem(&subjects, &index) : 0;
}

/* Slot + 1 of the thread's subject, or 0. */
static __always_inline __u32 find_slot(__u32 tid)
{
	__u32 *slot = bpf_map_lookup_elem(&slots, &tid);

	return slot ? *slot : 0;
}

static __always_inline void next_due(struct vp_subject *subject, __u64 now)
{
	if (unit != VP_UNIT_TIME || !width || !part_width)
		return;
	if (now >= subject->due_at)
		subject->due_at += ((now - subject->due_at) / part_width + 1) * part_width;
	if (now >= subject->ends_at)
		subject->ends_at += ((now - subject->ends_at) / width + 1) * width;
}

static __always_inline void begin_subject(struct vp_subject *subject, __u64 now)
{
	subject->begin = subject->since = now;
	subject->due_at = subject->ends_at = origin;
	next_due(subject, now);
	subject->exits_left = part_width;
}

/* Allocates a slot for a new thread; returns its index + 1, or 0: the table is full. */
static __noinline __u32 make_slot(__u32 pid, __u32 tid, __u32 vcpu, __u64 now)
{
	__u32 slot = 0;

	if (bpf_map_pop_elem(&free_slots, &slot)) {
		__sync_fetch_and_add(&lost.subjects, 1);
		return 0;
	}
	__u32 index = slot - 1;
	if (bpf_map_update_elem(&subjects, &index, &new_subject, BPF_ANY) ||
	    bpf_map_update_elem(&slots, &tid, &slot, BPF_ANY)) {
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
		__sync_fetch_and_add(&lost.subjects, 1);
		return 0;
	}
	struct vp_subject *subject = subject_at(slot);
	if (!subject)
		return 0;
	subject->tid = tid;
	subject->pid = pid;
	subject->vcpu = vcpu;
	begin_subject(subject, now);
	return slot;
}

/* Whether the counter's set is enabled at present. */
static __always_inline bool is_on(const struct interval_cpu *cpu, __u32 counter)
{
	if (!multiplexing || counter >= VP_COUNTERS_MAX)
		return true;
	__u32 set = sets_of_counters[counter];
	return !set || set - 1 == cpu->on;
}

/*
 * Reads this pCPU's counters and adds the differences to the subject (NULL: no subject). An
 * unreadable counter keeps its value.
 *
 * Counters are read one after the other. The overhead of reading in later ones is the same at both
 * ends of an interval and cancels out, if the code path is the same with and without a subject.
 */
static __noinline int read_counters(struct interval_cpu *cpu, struct vp_subject *subject)
{
	__u32 here = bpf_get_smp_processor_id();

	if (!cpu)
		return 0;
	struct vp_reading *sums = subject ? subject->counters : cpu->nobody;
	for (__u32 i = 0; i < VP_COUNTERS_MAX && i < n_counters; i++) {
		struct bpf_perf_event_value value = {};
		struct vp_reading *now = &cpu->now[i];
		if (!is_on(cpu, i))
			continue;
		if (bpf_perf_event_read_value(&counters, i * n_cpus + here, &value, sizeof(value)))
			continue;
		struct vp_reading *sum = &sums[i];
		sum->value += value.counter - now->value;
		sum->enabled += value.enabled - now->enabled;
		sum->running += value.running - now->running;
		now->value = value.counter;
		now->enabled = value.enabled;
		now->running = value.running;
	}
	return 0;
}

/* Whether the agent's programs are still counting. */
static __always_inline bool marker_is_intact(const struct vp_guest_counters *slots)
{
	__u64 marker = 0;

	return !bpf_probe_read_user(&marker, sizeof(marker), (void *)slots->marker_hva) &&
	       marker == slots->marker;
}

/* Reads the guest kernel's counters; only in the context of the vCPU thread. */
static __noinline int read_guest(struct vp_subject *subject)
{
	if (!subject || !wants_guest)
		return 0;
	__u64 key = (__u64)subject->pid << 32 | subject->vcpu;
	struct vp_guest_counters *found = bpf_map_lookup_elem(&guest_counters, &key);
	__u32 known = 0;

	for (int i = 0; found && i < VP_GUEST_COUNT; i++) {
		if (!(wants_guest & 1U << i) || !found->hva[i])
			continue;
		__u64 value = 0;
		if (bpf_probe_read_user(&value, sizeof(value), (void *)found->hva[i]))
			continue;
		/* 32-bit counters wrap around; totals do not. */
		if (found->narrow & 1U << i)
			value = subject->guest[i] + (__u32)(value - subject->guest[i]);
		subject->guest[i] = value;
		known |= 1U << i;
	}
	/* Checked after reading: everything read before is valid then. */
	if (found && known & found->marked && !marker_is_intact(found))
		known &= ~found->marked;
	subject->guest_known = known;
	return 0;
}

static __always_inline void add(struct vp_subject *subject, __u32 count, __u64 n)
{
	if (count < VP_COUNTS)
		subject->counts[count] += n;
}

/* Charges the time since the last change to the present state. */
static __always_inline void charge(struct vp_subject *subject, __u64 now)
{
	__s64 passed = now - subject->since;

	subject->since = now;
	if (passed <= 0)
		return;
	subject->counts[VP_COUNT_time] += passed;
	if (subject->state != VP_SUBJECT_RUNNING)
		subject->away += passed;
	if (subject->state == VP_SUBJECT_RUNNING && native)
		subject->counts[VP_COUNT_time_guest] += passed;
	if (subject->state == VP_SUBJECT_RUNNING)
		subject->counts[VP_COUNT_time_running] += passed;
	else if (subject->state == VP_SUBJECT_WAITING)
		subject->counts[VP_COUNT_time_waiting] += passed;
	else if (subject->state == VP_SUBJECT_BLOCKED)
		subject->counts[VP_COUNT_time_blocked] += passed;
}

/* Charges the time in the guest. */
static __always_inline void charge_guest(struct vp_subject *subject, __u64 now)
{
	__s64 passed = now - subject->entered_at;

	if (!(subject->flags & VP_SUBJECT_IN_GUEST) || passed <= 0)
		return;
	subject->counts[VP_COUNT_time_guest] += passed;
	subject->entered_at = now;
}

/* Live share of a counter in the interval, from its running time. A multiplexed one is enabled only
 * in its turns; the maximum is the subject's own time. */
static __always_inline __u32 live_of(const struct vp_subject *subject, __u64 running, __u64 enabled,
				     __u32 set, bool partial)
{
	if (!running || !multiplexing || !set)
		return share_of(running, enabled);
	if (unit == VP_UNIT_TIME || partial)
		return share_of(running,
				ran_until_now(subject) - subject->counts_before[ran_count]);
	return mean_share(&subject->sets, set - 1);
}

static __always_inline void put_counter(const struct vp_subject *subject, __u32 index, bool partial,
					struct vp_interval_value *value)
{
	if (index >= VP_COUNTERS_MAX)
		return;
	const struct vp_reading *now = &subject->counters[index];
	const struct vp_reading *before = &subject->counters_before[index];

	value->value = now->value - before->value;
	value->live = live_of(subject, now->running - before->running,
			      now->enabled - before->enabled, sets_of_counters[index], partial);
}

static __always_inline void put_guest(const struct vp_subject *subject, __u32 index,
				      struct vp_interval_value *value)
{
	if (index >= VP_GUEST_COUNT)
		return;
	if (!(subject->guest_known & subject->guest_known_before & 1U << index))
		return;
	value->value = subject->guest[index] - subject->guest_before[index];
	value->live = VP_LIVE_ALL;
}

static __noinline int put_value(const struct vp_subject *subject, struct vp_interval_value *value,
				__u32 i, __u64 now, __u32 flags)
{
	if (!subject || !value || i >= VP_EVENTS_MAX)
		return 0;
	__u32 source = events[i].source, index = events[i].index;

	value->time = now;
	value->id = VP_ID_interval_value;
	value->place = i;
	value->live = 0;
	value->value = 0;
	if (source == VP_FROM_COUNTER) {
		put_counter(subject, index, flags & VP_INTERVAL_PARTIAL, value);
	} else if (source == VP_FROM_GUEST) {
		put_guest(subject, index, value);
	} else if (index < VP_COUNTS && !(uncounted >> index & 1)) {
		value->value = subject->counts[index] - subject->counts_before[index];
		value->live = VP_LIVE_ALL;
	}
	return 0;
}

static __always_inline void put_head(const struct vp_subject *subject, struct vp_interval *head,
				     __u64 now, __u32 flags)
{
	head->time = now;
	head->id = VP_ID_interval;
	head->flags = flags;
	head->owner = subject->pid;
	head->tid = subject->tid;
	head->vcpu = subject->vcpu;
	head->number = subject->number;
	head->values = n_events;
	head->begin = subject->begin;
	__builtin_memcpy(head->comm, subject->comm, sizeof(head->comm));
}

/* Writes the interval and its values to the ring. */
static __always_inline void put_record(const struct vp_subject *subject, __u64 now, __u32 flags)
{
	__u32 here = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &here);

	if (!ring) { /* a pCPU that has just come online */
		__sync_fetch_and_add(&lost.intervals, 1);
		return;
	}
	__u64 wake = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > ring_half ? BPF_RB_FORCE_WAKEUP
									    : BPF_RB_NO_WAKEUP;
	struct interval_record *record = bpf_ringbuf_reserve(ring, record_size, 0);
	if (!record) {
		__sync_fetch_and_add(&lost.intervals, 1);
		return;
	}
	put_head(subject, &record->head, now, flags);
	for (__u32 i = 0; i < VP_EVENTS_MAX && i < n_events; i++)
		put_value(subject, &record->values[i], i, now, flags);
	bpf_ringbuf_submit(record, wake);
}

/* Starts the next interval at the end of this one. */
static __noinline int begin_next(struct vp_subject *subject, __u64 now)
{
	if (!subject)
		return 0;
	__builtin_memcpy(subject->counts_before, subject->counts, sizeof(subject->counts));
	for (__u32 i = 0; i < VP_COUNTERS_MAX && i < n_counters; i++)
		subject->counters_before[i] = subject->counters[i];
	__builtin_memcpy(subject->guest_before, subject->guest, sizeof(subject->guest));
	subject->guest_known_before = subject->guest_known;
	forget_shares(&subject->sets);
	subject->begin = now;
	subject->exits_left = part_width;
	next_due(subject, now);
	subject->number++;
	return 0;
}

/* Closes the subject's interval: writes a record with all differences. Its counters and its guest's
 * must have been read just now, or when it left its pCPU. */
static __noinline int close_interval(struct vp_subject *subject, __u64 now, __u32 flags)
{
	if (!subject)
		return 0;
	charge(subject, now);
	charge_guest(subject, now);
	put_record(subject, now, flags);
	begin_next(subject, now);
	return 0;
}

static __always_inline void switch_to(struct interval_cpu *cpu, __u32 set)
{
	if (set != cpu->set && request_set(set))
		cpu->set = set;
}

/* Resumes the subject's own set after another subject was on the pCPU; not if subjects alternate
 * frequently: then it uses the others' set. */
static __always_inline void resume_turn(struct interval_cpu *cpu, struct vp_subject *subject)
{
	if (!multiplexing)
		return;
	if (!(subject->flags & VP_SUBJECT_RAN)) /* short-lived subjects take any of the sets */
		subject->sets.turn = cpu->set;
	if (subject->sets.turn == cpu->set || !cpu->returns)
		return;
	cpu->returns--;
	switch_to(cpu, subject->sets.turn);
}

/* Ends a sub-interval whose counters were read: requests the next set. */
static __noinline int end_turn(struct interval_cpu *cpu, struct vp_subject *subject, __u64 now)
{
	if (!cpu || !subject)
		return 0;
	charge(subject, now);
	note_shares(subject);
	subject->sets.turn = next_set(&subject->sets, cpu->set);
	switch_to(cpu, subject->sets.turn);
	cpu->returns = RETURNS_PER_SLOT;
	return 0;
}

/* Ends a sub-interval and, if it is the last one, the interval. */
static __always_inline void close_part(struct interval_cpu *cpu, struct vp_subject *subject,
				       __u64 now, __u32 flags)
{
	bool is_last = true;

	if (multiplexing) {
		if (unit != VP_UNIT_EXITS)
			end_turn(cpu, subject, now);
		is_last =
		    unit == VP_UNIT_TIME ? now >= subject->ends_at : subject->sets.parts >= parts;
	}
	if (is_last) {
		close_interval(subject, now, flags);
	} else {
		subject->exits_left = part_width;
		next_due(subject, now);
	}
}

/* Reads everything that is only available while the subject is on this pCPU. */
static __always_inline void take_all(struct interval_cpu *cpu, struct vp_subject *subject)
{
	read_counters(cpu, subject);
	read_guest(subject);
	if (subject->tid)
		bpf_get_current_comm(subject->comm, sizeof(subject->comm));
}

/* Count of the interval's event at the last reading; -1: unknown. */
static __always_inline __s64 counted_by_trigger(const struct vp_subject *subject)
{
	__u32 i = trigger_counter;

	if (i >= VP_COUNTERS_MAX)
		return -1;
	const struct vp_reading *now = &subject->counters[i];
	const struct vp_reading *before = &subject->counters_before[i];
	if (now->running - before->running != now->enabled - before->enabled)
		return -1;
	return now->value - before->value;
}

/* Upper bound of the scheduler's instructions until perf stops the event, which may overflow
 * there. */
enum { AFTER_SWITCH = 2000 };

static __always_inline __s64 overdue_slack(void)
{
	__u64 early = part_width / 64;

	return early < AFTER_SWITCH ? early : AFTER_SWITCH;
}

/*
 * The thread loses the pCPU while its event's interrupt is due but masked. On Arm, perf then drops
 * the overflow. If the interrupt still comes, it does not end the next interval. Longer intervals
 * had no event yet: that of a new vCPU is opened later by user space.
 */
static __always_inline void close_if_overdue(struct interval_cpu *cpu, struct vp_subject *subject,
					     __u64 now)
{
	__s64 counted = counted_by_trigger(subject), width = part_width;

	if (unit != VP_UNIT_EVENT || counted < width - overdue_slack())
		return;
	close_part(cpu, subject, now, counted > width + overdue_slack() ? VP_INTERVAL_PARTIAL : 0);
	subject->flags |= VP_SUBJECT_WAS_OVERDUE;
}

static __always_inline bool is_closed_already(struct vp_subject *subject)
{
	__s64 counted = counted_by_trigger(subject);
	bool closed = subject->flags & VP_SUBJECT_WAS_OVERDUE && counted >= 0 &&
		      counted < (__s64)(part_width / 2);

	subject->flags &= ~VP_SUBJECT_WAS_OVERDUE;
	return closed;
}

/* Whether it is the first overflow for a new vCPU: its interval started before its event was
 * opened. */
static __always_inline bool began_before_trigger(const struct vp_subject *subject)
{
	__s64 counted = counted_by_trigger(subject), width = part_width;

	if (unit != VP_UNIT_EVENT || !(subject->flags & VP_SUBJECT_NEW))
		return false;
	return counted < 0 ? !subject->number : counted > width + overdue_slack();
}

/* Closes the interval or sub-interval of this pCPU's subject at its event. */
static __always_inline void close_here(struct interval_cpu *cpu, struct vp_subject *subject)
{
	__u64 now = bpf_ktime_get_ns();

	take_all(cpu, subject);
	if (is_closed_already(subject))
		return;
	__u32 flags = began_before_trigger(subject) ? VP_INTERVAL_PARTIAL : 0;
	subject->flags &= ~VP_SUBJECT_NEW;
	close_part(cpu, subject, now, flags);
	if (multiplexing && unit == VP_UNIT_EVENT)
		leave_out(&subject->sets, cpu->on, bpf_ktime_get_ns() - now);
}

static __always_inline void set_busy(struct interval_cpu *cpu, __u32 busy)
{
	barrier();
	*(volatile __u32 *)&cpu->busy = busy;
	barrier();
}

/* The pCPU's programs are done: closes an interval that became due meanwhile. */
static __always_inline void leave(struct interval_cpu *cpu)
{
	if (*(volatile __u32 *)&cpu->due) {
		struct vp_subject *subject = subject_at(cpu->slot);
		*(volatile __u32 *)&cpu->due = 0;
		if (subject)
			close_here(cpu, subject);
	}
	set_busy(cpu, 0);
}

#endif
