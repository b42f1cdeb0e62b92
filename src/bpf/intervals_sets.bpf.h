/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Part of intervals.bpf.c: multiplexing of counter sets. BPF programs cannot enable or disable
 * counters. They send a request to a thread bound to this pCPU in user space
 * (collect/programs/multiplex.c): woken by an interrupt of this pCPU, it runs before the subject
 * continues.
 */
#ifndef VP_BPF_INTERVALS_SETS_H
#define VP_BPF_INTERVALS_SETS_H

#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/intervals_abi.h"
#include "bpf/kernel_ring.bpf.h"

/* Maximum number of switches between two interval events due to other subjects on the pCPU. */
enum { RETURNS_PER_SLOT = 4 };

/* Per pCPU, to its switcher thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kernel_ring);
} requests SEC(".maps");

/* Set by the loader; 0: sets are not multiplexed. */
const volatile __u32 multiplexing = 0;
const volatile __u32 parts = 1; /* sub-intervals per interval */
const volatile __u64 part_width = 0;
/* enum vp_interval_count: the time of the subject that counts as live. */
const volatile __u32 ran_count = VP_COUNT_time_running;
/* Set of each counter, from 1; 0: counted all the time. */
const volatile __u8 sets_of_counters[VP_COUNTERS_MAX] = {};
/* First counter of each set. */
const volatile __u32 first_counters[VP_SETS_MAX] = {};

/* part / whole in billionths; for times above an hour, low bits are dropped. */
static __always_inline __u64 share_of(__u64 part, __u64 whole)
{
	if (!whole)
		return 0;
	if (part >= whole)
		return VP_LIVE_ALL;
	if (whole >> 34) {
		whole >>= 24;
		part >>= 24;
	}
	return part * VP_LIVE_ALL / whole;
}

static __always_inline __u64 ran_until_now(const struct vp_subject *subject)
{
	return subject->counts[ran_count];
}

/* Ends a sub-interval after its values were added to the subject. */
static __noinline int note_shares(struct vp_subject *subject)
{
	if (!subject)
		return 0;
	struct vp_set_shares *sets = &subject->sets;
	__u64 until = ran_until_now(subject);
	__u64 ran = until > sets->ran_before ? until - sets->ran_before : 0;

	for (__u32 set = 0; set < VP_SETS_MAX && set < multiplexing; set++) {
		__u32 counter = first_counters[set];
		if (counter >= VP_COUNTERS_MAX)
			continue;
		__u64 running = subject->counters[counter].running;
		__s64 lived = running - sets->running_before[set];
		if (lived > 0)
			sets->sums[set] += share_of(lived, ran);
		sets->running_before[set] = running;
	}
	sets->ran_before = until;
	sets->busy += ran != 0;
	sets->parts++;
	return 0;
}

/* Excludes the programs' own work at an interval event: the processor's counters stop meanwhile,
 * the clock does not. */
static __always_inline void leave_out(struct vp_set_shares *sets, __u32 set_on, __u64 time)
{
	sets->ran_before += time;
	if (set_on < VP_SETS_MAX)
		sets->running_before[set_on] += time;
}

/* Resets the shares for the next interval. */
static __always_inline void forget_shares(struct vp_set_shares *sets)
{
	sets->parts = sets->busy = 0;
	for (__u32 set = 0; set < VP_SETS_MAX && set < multiplexing; set++)
		sets->sums[set] = 0;
}

/* Live share of a set in the whole interval: mean over its sub-intervals. */
static __always_inline __u32 mean_share(const struct vp_set_shares *sets, __u32 set)
{
	return set < VP_SETS_MAX && sets->busy ? sets->sums[set] / sets->busy : 0;
}

/* The set with the smallest share in this interval; the present one in case of a tie. */
static __always_inline __u32 next_set(const struct vp_set_shares *sets, __u32 set_on)
{
	__u64 least = set_on < VP_SETS_MAX ? sets->sums[set_on] : 0;

	for (__u32 set = 0; set < VP_SETS_MAX && set < multiplexing; set++) {
		if (sets->sums[set] + VP_LIVE_ALL / 2 >= least)
			continue;
		least = sets->sums[set];
		set_on = set;
	}
	return set_on;
}

/* Wakes this pCPU's switcher; false: the message was lost. */
static __always_inline bool request_set(__u32 set)
{
	__u32 here = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&requests, &here);
	struct vp_set_request request = {.set = set};

	return ring && !bpf_ringbuf_output(ring, &request, sizeof(request), BPF_RB_FORCE_WAKEUP);
}

#endif
