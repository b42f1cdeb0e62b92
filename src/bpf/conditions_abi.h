/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by conditions.bpf.c and collect/programs/conditions.c. */
#ifndef VP_BPF_CONDITIONS_ABI_H
#define VP_BPF_CONDITIONS_ABI_H

#include <linux/types.h>

/* As enum vp_condition of schema/condition.h. */
enum vp_fired_kind {
	VP_FIRED_STEAL,
	VP_FIRED_WAKEUP,
	VP_FIRED_EXIT,
	VP_FIRED_THROTTLED,
	VP_FIRED_KINDS
};

/* A condition was seen. */
struct vp_fired {
	__u64 time, ns;       /* when it was seen, and how long it took */
	__u32 kind;           /* enum vp_fired_kind */
	__u32 pid, tid, vcpu; /* the vCPU's thread; its number, or VP_VCPU_UNKNOWN */
	__u32 cpu;            /* pCPU for which it waited, or on which it was */
	__u32 reason;         /* of the exit */
	/* By user space: who had that pCPU longest meanwhile, as far back as is known; tid 0:
	 * nobody.
	 */
	__u32 thief_pid, thief_tid;
	__u64 thief_ns;
	char thief_comm[16];
};

/* A pCPU's latest slices: who had it, up to when. */
enum { VP_CONDITION_SLICES = 64 };
struct vp_condition_slice {
	__u64 begin, end;
	__u32 pid, tid;
	char comm[16];
};

struct vp_condition_cpu {
	__u64 head; /* of slices that ended: this one is open */
	struct vp_condition_slice slices[VP_CONDITION_SLICES];
};

/* Message to user space. */
struct vp_condition_notice {
	struct vp_fired fired;
	struct vp_condition_cpu cpu; /* that pCPU's */
};

/* A vCPU's thread. */
struct vp_condition_thread {
	__u64 ready_at; /* since when it has been runnable without a pCPU; 0: it is not */
	__u64 exit_at;  /* when it left the guest; 0: it halts, or is in the guest */
	__u32 woken;    /* it is runnable by a wake-up */
	__u32 cpu;      /* for which it waits */
	__u32 vcpu;
	__u32 reason; /* of the last exit */
	__u32 throttled;
	__u32 padding;
};

#endif
