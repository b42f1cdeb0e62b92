/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes samples: one program at each pCPU's sampling event, one at context switches (only
 * switches of vCPU threads write a record). bpf/sampler_abi.h describes the two output paths. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/sampler_by_perf.bpf.h"
#include "bpf/sampler_into_ring.bpf.h"

SEC("perf_event")
int take_sample(struct bpf_perf_event_data *context)
{
	if (seen_by != VP_SEEN_BY_PERF)
		sample_into_ring(context, false);
	else
		sample_by_perf(context, false);
	return 0;
}

/* One program per output path: together they would exceed the BPF stack limit. */
SEC("perf_event")
int chains_into_ring(struct bpf_perf_event_data *context)
{
	sample_into_ring(context, true);
	return 0;
}

SEC("perf_event")
int chains_by_perf(struct bpf_perf_event_data *context)
{
	sample_by_perf(context, true);
	return 0;
}

SEC("raw_tp/task_rename")
int note_rename(void *context)
{
	__sync_fetch_and_add(&renames, 1);
	return 0;
}

static __always_inline void note_switch(void *context, struct task_struct *task,
					struct task_struct *other, void *notifier, __u32 id,
					__u32 flags)
{
	if (seen_by != VP_SEEN_BY_PERF)
		switch_into_ring(task, other, notifier, id, flags);
	else
		switch_by_perf(context, task, other, notifier, id, flags);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_vcpu_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	void *out = kvm_notifier_of_known_task(prev), *in = kvm_notifier_of_known_task(next);

	if (out)
		note_switch(ctx, prev, next, out, VP_ID_vcpu_out,
			    !preempted && task_is_blocked(prev) ? VP_BLOCKED : 0);
	if (in)
		note_switch(ctx, next, prev, in, VP_ID_vcpu_in, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
