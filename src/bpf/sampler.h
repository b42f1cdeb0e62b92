/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sampling program hands to user space: shared by sampler.bpf.c and collect/sampler.c. */
#ifndef VP_BPF_SAMPLER_H
#define VP_BPF_SAMPLER_H

#include <linux/types.h>

enum vp_raw_kind { VP_RAW_SAMPLE = 1, VP_RAW_VCPU_IN = 2, VP_RAW_VCPU_OUT = 3 };

/*
 * One shape for all. Where the kernel's own sample header comes with it (VP_SEEN_BY_PERF), that
 * says whether it hit the guest and where: perf asks KVM, and knows every vendor. The program adds
 * what perf does not know.
 */
struct vp_raw_record {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u64 host_ip;
	__u64 guest_ip; /* with VP_RAW_GUEST */
	__u64 as_root;
	__u32 kind;
	__u32 pid, tid;
	__u32 vcpu;
	__u32 exit_reason;
	__u32 flags; /* enum vp_flag of schema/records.h, and VP_RAW_… */
	__u32 other_tid;
	__u32 cpl;
	char comm[16];
	/* Of the guest's current task, with VP_BY_MEMORY. */
	__u32 guest_tgid, guest_tid;
	char guest_comm[16];
	__u64 guest_task; /* the guest's address of its task_struct */
};

#define VP_RAW_ON_VCPU 0x100u    /* the thread is inside KVM's vCPU loop … */
#define VP_RAW_VCPU_KNOWN 0x200u /* … and `vcpu` says of which vCPU */
#define VP_RAW_GUEST 0x400u      /* the sample hit the guest, at `guest_ip` … */
#define VP_RAW_USER 0x800u       /* … or the host's user space */
#define VP_RAW_NAMELESS 0x1000u  /* `comm` is that of the pCPU's sample before, and not here */

/*
 * How a sample learns what it hit. By perf works everywhere, also where the guest's PC can only be
 * read by the CPU (Intel) and in an NMI, but writing through perf costs as much again as all the
 * rest of a sample. By IRQ goes by what KVM's handling_intr_from_guest says of an interrupt.
 */
enum vp_seen_by { VP_SEEN_BY_PERF = 0, VP_SEEN_BY_IRQ = 1 };

/*
 * A pCPU's ring of raw records, in memory that programs and user space share. Only the pCPU's own
 * programs write, one at a time (interrupts are off in each); only user space reads. Record number
 * N is in slot N modulo the ring's size.
 */
struct vp_ring {
	__u64 head; /* records written; the programs' */
	__u64 padding[7];
	__u64 tail; /* records read; user space's, on a cache line of its own */
	__u64 more_padding[7];
};

#endif
