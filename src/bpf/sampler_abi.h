/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of the sampling program: shared by sampler.bpf.c and collect/programs/sampler.c. */
#ifndef VP_BPF_SAMPLER_ABI_H
#define VP_BPF_SAMPLER_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/busy.h"

/*
 * How a sample learns what it hit. By perf works everywhere, also where the guest's PC can only be
 * read by the CPU (Intel, in an NMI), but writing through perf costs as much again as all the rest
 * of a sample. By IRQ and by NMI go by KVM's handling_intr_from_guest, which is set for the
 * interrupt or NMI that ended the guest's run.
 */
enum vp_seen_by { VP_SEEN_BY_PERF = 0, VP_SEEN_BY_IRQ = 1, VP_SEEN_BY_NMI = 2 };

/* Time, place and weight of a sample whose NMI came while another program wrote into the ring: that
 * one writes it when it is done. */
struct vp_held_sample {
	__u64 time; /* 0: none */
	__u64 ip;
	__u64 weight; /* as in sample_period; 0: the usual one */
};

/* By IRQ and by NMI, the programs write the records of the schema themselves, into a ring per pCPU
 * in memory that they share with user space: this header, `ring_size` bytes (a power of two), and
 * room for a record that starts in them and ends beyond. Only the pCPU's own programs write, one at
 * a time: interrupts are off in each, and an NMI that finds one of them writing holds its sample.
 * Only user space reads.
 *
 * `head` and `tail` count bytes; their remainder by `ring_size` is the offset of the next record. A
 * record that reaches the end of the ring's bytes is not divided: the next one starts the next lap,
 * and `lap_end` is the end of the previous lap in the ring. */
struct vp_ring {
	__u64 head; /* of what was written; the programs' */
	__u64 lap_end;
	__u64 lost; /* records that found no room */
	/* The programs' own: what the last sample was of. */
	__u64 last_notifier;
	struct vp_vmcb_memo last_vmcb;
	__u32 last_tid, last_vcpu, last_renames;
	__u32 last_identity; /* index in identity_vcpus */
	__u64 hit_ip;        /* where KVM is when an interrupt of the guest comes through to it */
	__u64 reported;      /* time of the last wakeup of user space for a process */
	__u32 writing;       /* a program is between a record's start and its end */
	__u32 must_ring;     /* the reader is to be woken */
	struct vp_held_sample held;
	struct vp_busy busy;
	__u64 tail; /* of what was read; user space's, on a cache line of its own */
	__u64 more_padding[7];
};
/* More than what is written at once: a sample, and before it whose it is on host and guest. */
#define VP_SAMPLE_SPARE 192u
/* And its call chains. */
#define VP_RING_SPARE 12288u

/* Processes of guests with an interpreter. */
enum { VP_INTERPRETERS = 1024 };

/* Where an interpreter's code is. */
struct vp_interpreter {
	__u64 low, high;
};

/*
 * By perf, one shape for all: the kernel's own sample header comes with it, which shows whether the
 * sample hit the guest and where. perf asks KVM, and knows every vendor. The program adds what perf
 * does not know.
 */
enum vp_raw_kind { VP_RAW_SAMPLE = 1, VP_RAW_VCPU_IN = 2, VP_RAW_VCPU_OUT = 3, VP_RAW_CHAIN = 4 };

struct vp_raw_record {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u64 host_ip;
	__u64 as_root;
	__u32 kind;
	__u32 pid, tid;
	__u32 vcpu; /* VP_VCPU_UNKNOWN, if it is */
	__u32 exit_reason;
	__u32 flags; /* enum vp_flag of schema/records.h, and VP_RAW_… */
	__u32 other_tid;
	__u32 cpl;
	char comm[16];
	/* The guest's current task, with VP_BY_MEMORY. */
	__u32 guest_pid, guest_tid;
	__u64 guest_task; /* the guest's address of its task_struct */
	__u64 events;     /* of the trigger since the sample before: its period */
	char guest_comm[16];
	/* The method whose frame is the innermost one, if the guest's process has an interpreter:
	 * the program counter, which only perf has, shows whether that runs. 0: unknown. */
	__u64 method;
};

#define VP_RAW_ON_VCPU 0x100u  /* the thread is inside KVM's vCPU loop */
#define VP_RAW_NEW_TASK 0x200u /* the guest's task is to be named */

/* Starts like a vp_raw_record, followed by the chain records of the next sample. */
struct vp_raw_chain {
	__u64 reserved[3];
	__u32 kind;
	__u32 used; /* bytes of records */
};

#endif
