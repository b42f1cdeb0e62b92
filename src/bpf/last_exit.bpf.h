/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intel: data of the last VM exit on this pCPU, from the tracepoint kvm_exit. exit_event.bpf.c
 * writes it before other programs at kvm_exit run. An interrupt that hits the guest follows
 * immediately, with interrupts off in between. Arm: times of the last entry and exit. The loader
 * shares one map among all objects.
 */
#ifndef VP_BPF_LAST_EXIT_BPF_H
#define VP_BPF_LAST_EXIT_BPF_H

#include <bpf/bpf_helpers.h>

#include "bpf/last_exit_abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_last_exit);
} last_exit SEC(".maps");

/* 0, or without `known`: ask KVM. */
static __always_inline struct vp_last_exit *this_cpu_last_exit(void)
{
	__u32 pcpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&last_exit, &pcpu);
}

#endif
