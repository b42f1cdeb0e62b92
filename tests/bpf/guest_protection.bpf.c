/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks as the lister does how a VM's memory is kept from the host. */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kvm_protection.bpf.h"

__u32 of_vm, of_vcpu;

/* Addresses of a struct kvm and a struct kvm_vcpu. */
SEC("raw_tp")
int ask(struct bpf_raw_tracepoint_args *context)
{
	of_vm = protection_of((void *)context->args[0]);
	of_vcpu = protection_of_vcpu((void *)context->args[1]);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
