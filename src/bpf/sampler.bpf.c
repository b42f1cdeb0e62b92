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

/* One program per output path: together they would exceed the BPF stack limit, and Linux before
 * v5.12 (5ffa25502b5a "bpf: Add instructions for atomic_[cmp]xchg"), on Arm before v5.18, rejects
 * programs with the exchange of store_after(), even if it is not reached (plain_stores.h). */
SEC("perf_event")
int take_sample(struct bpf_perf_event_data *context)
{
	sample_into_ring(context, false);
	return 0;
}

SEC("perf_event")
int take_sample_by_perf(struct bpf_perf_event_data *context)
{
	sample_by_perf(context, false);
	return 0;
}

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

static __always_inline __u32 flags_of_switch(bool preempted, struct task_struct *prev)
{
	return !preempted && task_is_blocked(prev) ? VP_BLOCKED : 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_vcpu_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	void *out = kvm_notifier_of_known_task(prev), *in = kvm_notifier_of_known_task(next);

	if (out)
		switch_into_ring(prev, next, out, VP_ID_vcpu_out, flags_of_switch(preempted, prev));
	if (in)
		switch_into_ring(next, prev, in, VP_ID_vcpu_in, 0);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_vcpu_switch_by_perf, bool preempted, struct task_struct *prev,
	     struct task_struct *next)
{
	void *out = kvm_notifier_of_known_task(prev), *in = kvm_notifier_of_known_task(next);

	if (out)
		switch_by_perf(ctx, prev, next, out, VP_ID_vcpu_out,
			       flags_of_switch(preempted, prev));
	if (in)
		switch_by_perf(ctx, next, prev, in, VP_ID_vcpu_in, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
