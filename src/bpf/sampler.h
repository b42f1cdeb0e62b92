/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sampling program hands to user space: shared by sampler.bpf.c and collect/sampler.c. */
#ifndef VP_BPF_SAMPLER_H
#define VP_BPF_SAMPLER_H

#include <linux/types.h>

enum vp_raw_kind { VP_RAW_SAMPLE = 1, VP_RAW_VCPU_IN = 2, VP_RAW_VCPU_OUT = 3 };

/*
 * One shape for all: the kernel's own sample header, which comes with it, says whether it hit the
 * guest and where (perf asks KVM, and knows every vendor); the program adds what perf does not
 * know.
 */
struct vp_raw_record {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u64 host_ip;
	__u64 as_root;
	__u32 kind;
	__u32 pid, tid;
	__u32 vcpu;
	__u32 exit_reason;
	__u32 flags; /* enum vp_flag of schema/records.h, and VP_RAW_… */
	__u32 other_tid;
	__u32 cpl;
	char comm[16];
};

#define VP_RAW_ON_VCPU 0x100u    /* the thread is inside KVM's vCPU loop … */
#define VP_RAW_VCPU_KNOWN 0x200u /* … and `vcpu` says of which vCPU */

#endif
