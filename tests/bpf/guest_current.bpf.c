/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks as the sampler does who runs in a guest, on the thread that runs the program. */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/guest_current.bpf.h"

bool known, is_new;
__u32 tgid;
__u64 as_root;
__u32 memory; /* of the task, with the page tables that are in use */
char comm[16];
__u32 memo = VP_IDENTITY_VCPUS;

/* The address space's root, as far as the processor tells it; the time. */
SEC("raw_tp")
int ask(struct bpf_raw_tracepoint_args *context)
{
	struct guest_current current = {};
	__u32 place = memo;

	known =
	    read_guest_current(1, 0, context->args[0], true, context->args[1], &place, &current);
	memo = place;
	is_new = current.is_new;
	tgid = current.tgid;
	as_root = current.as_root;
	struct vp_identity_vcpu *vcpu = find_identity(1, 0, &place);
	memory = vcpu && known ? memory_of_task(vcpu, context->args[0]) : VP_CHAIN_FAILED;
	__builtin_memcpy(comm, current.comm, sizeof(comm));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
