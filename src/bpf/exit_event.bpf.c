/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has KVM read the guest's RIP at each VM exit, on Intel: the tracepoint's event has it as a field,
 * which is filled in before the program runs, and KVM keeps what it has read of the VMCS
 * (read_vmx_rip() of kvm_compat.bpf.h). A raw tracepoint has no such record.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("tp/kvm/kvm_exit")
int make_kvm_read_rip(void *context)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
