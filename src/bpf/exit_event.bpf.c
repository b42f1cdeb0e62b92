/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intel: makes KVM read the guest RIP and the exit qualification at each VM exit. They are
 * fields of the tracepoint's event, which the kernel fills in before the program runs; a raw
 * tracepoint has no such record. KVM also caches RIP (read_vmx_rip() in kvm_compat.bpf.h). */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/last_exit.bpf.h"

/* KVM's TRACE_EVENT_KVM_EXIT since v5.10; earlier kernels have no intr_info. */
struct trace_event_raw_kvm_exit {
	unsigned int exit_reason;
	unsigned long guest_rip;
	__u64 info1;
	__u32 intr_info;
} __attribute__((preserve_access_index));

/* 0 would hide the event from all other users (perf). */
enum { GOES_ON = 1 };

SEC("tp/kvm/kvm_exit")
int note_last_exit(struct trace_event_raw_kvm_exit *context)
{
	struct vp_last_exit *now = this_cpu_last_exit();

	/* Without BTF of modules (before 5.11), opening the event is sufficient. */
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
