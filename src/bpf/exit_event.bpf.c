/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes KVM read the guest's RIP and the exit's qualification at each VM exit, on Intel: the
 * tracepoint's event has them as fields, which are filled in before the program runs. A raw
 * tracepoint has no such record. KVM keeps RIP, too (read_vmx_rip() of kvm_compat.bpf.h).
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/last_exit.bpf.h"

/* As TRACE_EVENT_KVM_EXIT of KVM has it, since v5.10: before, there was no intr_info. */
struct trace_event_raw_kvm_exit {
	unsigned int exit_reason;
	unsigned long guest_rip;
	__u64 info1;
	__u32 intr_info;
} __attribute__((preserve_access_index));

/* 0 would keep the event from all others who want it (perf). */
enum { GOES_ON = 1 };

SEC("tp/kvm/kvm_exit")
int note_last_exit(struct trace_event_raw_kvm_exit *context)
{
	struct vp_last_exit *now = this_cpu_last_exit();

	/* Where modules are not described (before 5.11), having the event is all. */
	if (!now || !bpf_core_field_exists(context->intr_info))
		return GOES_ON;
	now->rip = context->guest_rip;
	now->qualification = context->info1;
	now->reason = context->exit_reason;
	now->interruption = context->intr_info;
	now->known = 1;
	return GOES_ON;
}

char LICENSE[] SEC("license") = "GPL";
