/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of sampler.bpf.c: weight of a sample, in events or time. */
#ifndef VP_BPF_SAMPLER_WEIGHT_H
#define VP_BPF_SAMPLER_WEIGHT_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

#include "bpf/sampler_abi.h"
#include "schema/weighting.h"

/* Set by the loader. Read the event itself: its period is not fixed, and on some architectures
 * (x86) perf reports that of the next sample. */
const volatile __u32 by_count = 0;
/* Set by the loader: enum vp_weighting, and the default weight. */
const volatile __u32 weighting = VP_WEIGHTING_TICKS;
const volatile __u64 usual_events = 0;
const volatile __u64 usual_ns = 0;

/* Per pCPU: the event's count at the previous sample. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counted_before SEC(".maps");

/* Events since the previous sample. */
static __always_inline __u64 events_since(struct bpf_perf_event_data *context)
{
	struct bpf_perf_event_value now;
	__u32 zero = 0;
	__u64 *before = bpf_map_lookup_elem(&counted_before, &zero), ret;

	if (!by_count || !before || bpf_perf_prog_read_value((void *)context, &now, sizeof(now)))
		return context->sample_period;
	ret = now.counter - *before;
	*before = now.counter;
	return ret;
}

/* Weight of a sample that differs from the default; otherwise 0. */
static __always_inline __u64 unusual_weight(struct bpf_perf_event_data *context,
					    struct vp_busy *busy, __u64 time)
{
	if (weighting == VP_WEIGHTING_TICKS)
		return 0;
	__u64 events = events_since(context);
	if (weighting == VP_WEIGHTING_TIME)
		return vp_busy_before(busy, time, events, usual_ns);
	return events == usual_events ? 0 : events;
}

#endif
