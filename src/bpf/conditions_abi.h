/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Triggers of the flight recorder, shared by conditions.bpf.c and collect/programs/conditions.c. */
#ifndef VP_BPF_CONDITIONS_ABI_H
#define VP_BPF_CONDITIONS_ABI_H

#include <linux/types.h>

/* In the order of enum vp_condition in schema/condition.h. */
enum vp_fired_kind {
	VP_FIRED_STEAL,
	VP_FIRED_WAKEUP,
	VP_FIRED_EXIT,
	VP_FIRED_THROTTLED,
	VP_FIRED_KINDS
};

/* A trigger that fired. */
struct vp_fired {
	__u64 time, ns;       /* time, and measured duration */
	__u32 kind;           /* enum vp_fired_kind */
	__u32 pid, tid, vcpu; /* the vCPU thread; vCPU number, or VP_VCPU_UNKNOWN */
	__u32 cpu;            /* pCPU for which it waited, or on which it ran */
	__u32 reason;         /* exit reason */
	/* Set by user space: the thread that had that pCPU longest meanwhile, as far as known; tid
	 * 0: none. */
	__u32 thief_pid, thief_tid;
	__u64 thief_ns;
	char thief_comm[16];
};

/* The latest slices of a pCPU: thread, and end. */
enum { VP_CONDITION_SLICES = 64 };
struct vp_condition_slice {
	__u64 begin, end;
	__u32 pid, tid;
	char comm[16];
};

struct vp_condition_cpu {
	__u64 head; /* number of ended slices; the present one is open */
	struct vp_condition_slice slices[VP_CONDITION_SLICES];
};

/* Message to user space. */
struct vp_condition_notice {
	struct vp_fired fired;
	struct vp_condition_cpu cpu; /* state of that pCPU */
};

/* State of a vCPU thread. */
struct vp_condition_thread {
	__u64 ready_at; /* time since which it has been runnable without a pCPU; 0: it is not */
	__u64 exit_at;  /* time of the VM exit; 0: halted, or in the guest */
	__u32 woken;    /* runnable after a wakeup */
	__u32 cpu;      /* pCPU for which it waits */
	__u32 vcpu;
	__u32 reason; /* last exit reason */
	__u32 throttled;
	__u32 padding;
};

#endif
