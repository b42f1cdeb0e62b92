/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of every vCPU's time: shared by account.bpf.c and collect/programs/account_source.c.
 */
#ifndef VP_BPF_ACCOUNT_ABI_H
#define VP_BPF_ACCOUNT_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"

/* What a vCPU is doing: one of these at every instant. The order is that of vcpu_account's fields.
 */
enum vp_state {
	VP_STATE_GUEST,
	VP_STATE_KERNEL, /* the host kernel handles an exit */
	VP_STATE_POLL,
	VP_STATE_VMM,     /* in the VMM: from the end of KVM_RUN to the next entry */
	VP_STATE_HALTED,  /* its thread sleeps after HLT or MWAIT */
	VP_STATE_WAITING, /* its thread sleeps for another reason */
	VP_STATE_WAKING,  /* woken, and has no pCPU yet */
	VP_STATE_PREEMPTED,
	VP_STATE_THROTTLED, /* runnable, but its cgroup's CPU quota is used up */
	VP_STATE_IRQ,       /* an interrupt of the host has its pCPU */
	VP_STATES,
	VP_STATE_UNKNOWN = VP_STATES, /* nothing was seen of it: its first event will tell */
	VP_STATE_GONE,
	VP_STATE_ROOM = 16
};

/* Flags of struct vp_account_vcpu. */
enum vp_account_flag {
	VP_EXIT_OPEN = 1,    /* between an exit and the next entry; exit_at says since when … */
	VP_REASON_KNOWN = 2, /* … and `reason` why */
	VP_EXIT_SPLIT = 4,   /* parts of that were neither in the host kernel nor an interrupt's */
	VP_NUMBER_KNOWN = 8,
	VP_SWITCH_IGNORED = 32,
	VP_BLOCKED_ONCE = 64, /* in this exit, at block_at */
	VP_PLACE_KNOWN = 128, /* ip of the exit; cr3 with it */
	VP_POLLS_NOT = 256,   /* its next halt */
};

/* Interrupt sources with a counter in each vCPU; above VP_IRQ_DEVICE: that and the number. */
enum vp_irq_source {
	VP_IRQ_SOFT = 0, /* and the nine behind it */
	VP_IRQ_LOCAL_TIMER = 10,
	VP_IRQ_RESCHEDULE,
	VP_IRQ_CALL_FUNCTION,
	VP_IRQ_CALL_FUNCTION_SINGLE,
	VP_IRQ_WORK,
	VP_IRQ_SOURCES = 16,
	VP_IRQ_DEVICE = 0x10000
};

enum {
	VP_EXIT_CODES = 256,   /* what a reason is told apart by */
	VP_EXIT_REASONS = 64,  /* different ones of a vCPU; the last one takes the rest */
	VP_EXIT_SITES = 512,   /* places of the guest that are counted in place: a power of two */
	VP_SITE_BLOCKS = 8192, /* blocks of memory that evicted ones are told apart by, at most */
	VP_SLICES = 128,       /* of a pCPU, kept while a vCPU waits for it: a power of two */
	VP_TID_BITS = 65536,   /* of the filter of threads' ids: a power of two */
	VP_MOST_PCPUS = 8192,  /* as Linux has (NR_CPUS): a power of two */
	/*
	 * Buckets of a time: four to each power of two from 16 ns on; 0 to 3 are 4 ns each. The
	 * last takes all from 2^40 ns (18 minutes) on.
	 */
	VP_BUCKET_FIRST = 4,
	VP_BUCKETS = 4 * (40 - VP_BUCKET_FIRST + 1) + 1
};

static inline __attribute__((always_inline)) __u32 vp_bucket_of(__u64 ns)
{
	__u64 rest = ns;
	__u32 power = 0;

	if (ns < 1 << VP_BUCKET_FIRST)
		return (__u32)ns >> 2;
	if (ns >> 40)
		return VP_BUCKETS - 1;
	if (rest >> 32) {
		rest >>= 32;
		power += 32;
	}
	if (rest >> 16) {
		rest >>= 16;
		power += 16;
	}
	if (rest >> 8) {
		rest >>= 8;
		power += 8;
	}
	if (rest >> 4) {
		rest >>= 4;
		power += 4;
	}
	if (rest >> 2) {
		rest >>= 2;
		power += 2;
	}
	power += rest >> 1;
	return (power - VP_BUCKET_FIRST + 1) * 4 + ((__u32)(ns >> (power - 2)) & 3);
}

/* The least time that falls into the bucket. */
static inline __u64 vp_bucket_begin(__u32 bucket)
{
	__u32 power = bucket / 4 + VP_BUCKET_FIRST - 1;

	return bucket < 4 ? bucket * 4 : (4ULL + bucket % 4) << (power - 2);
}

/*
 * Only the thread's own pCPU, or whoever holds the lock of its run queue, writes here, one at a
 * time. A copy is whole when states sum to since - begin: each change keeps that.
 */
struct vp_account_vcpu {
	__u64 kvm_vcpu; /* the kernel's struct, 0 before its first entry or exit */
	struct vp_vmcb_memo vmcb;
	__u64 begin, since, end; /* the account's; of the present state; end: GONE since then */
	__u64 exit_at, block_at, wait_at;
	__u64 states[VP_STATE_ROOM]; /* ns up to `since` */
	__u64 parts[VP_STATE_ROOM];  /* ns since exit_at, all but KERNEL */
	__u64 ip, cr3;               /* of the guest at the exit */
	__u64 address;               /* the guest's physical one that it was to, or VP_NO_ADDRESS */
	__u32 detail_kind, detail;   /* what it was to: enum vp_detail_kind, and a number */
	__u64 exits, wakeups, preemptions;
	__u64 polls, poll_wasted; /* halts that polled; ns of those that slept all the same */
	__u64 irq_ns[VP_IRQ_SOURCES], irq_count[VP_IRQ_SOURCES];
	__u32 tid, pid, number;
	__u32 state;  /* enum vp_state */
	__u32 base;   /* the one to go back to after a wait or an interrupt */
	__u32 asleep; /* what it is if UNKNOWN turns out to have been sleep */
	__u32 reason, flags;
	__u32 cpu;                        /* whose run queue it waits in */
	__u32 guest_place;                /* of find_identity() */
	__u32 soft;                       /* source + 1 of the softirq that is being handled */
	__u32 busy;                       /* a program that can be interrupted is at work here */
	__u32 reasons;                    /* how many different ones it had */
	__u8 reason_slots[VP_EXIT_CODES]; /* place in its row of `exits` + 1 */
};

/* Exits for one reason of one vCPU. Kernel time is the rest of the total. */
struct vp_account_exit {
	__u64 count, total, max;
	__u64 poll, vmm, stolen, blocked, waking;
	__u32 reason, reserved;
	__u32 buckets[VP_BUCKETS + 1];
};

struct vp_account_site {
	__u64 ip, cr3, address;
	__u64 count, ns, last; /* last: when it was there */
	__u64 idle, stolen;    /* of ns: asleep; runnable, but without the pCPU */
	__u32 detail_kind, detail;
	__u32 reason, reserved;
};

struct vp_site_key {
	__u64 ip, cr3, address;
	__u32 detail_kind, detail;
	__u32 pid, reason;
};

struct vp_site_cost {
	__u64 count, ns, last, idle, stolen;
};

struct vp_thief_key {
	__u16 vcpu; /* place of the vCPU whose time it was */
	__u8 kind;  /* enum vp_thief_record */
	__u8 state; /* of the vCPU: WAKING, PREEMPTED, IRQ */
	__u32 id;
};

struct vp_thief_cost {
	__u64 ns, count;
};

struct vp_account_task {
	char comm[16];
	__u64 cgroup;
	__u32 pid, kernel_thread;
};

/* A stretch of a pCPU's time that ended while a vCPU waited for it, and whose it was. */
struct vp_account_slice {
	__u64 end;
	__u32 kind; /* VP_BY_VCPU, VP_BY_TASK, VP_BY_NOBODY */
	__u32 id;   /* as a thief's of that kind */
};

/* What has a pCPU; only its own programs write it. */
struct vp_account_here {
	__u32 vcpu;       /* place + 1 of the vCPU whose thread has it, or 0 */
	__u32 tid;        /* of the thread that has it */
	__u64 irq_at;     /* when the hard interrupt began … */
	__u32 irq_source; /* … that is being handled while that vCPU has the pCPU: source + 1 */
	/* Of an interrupt that hit the guest, and is not counted yet: source + 1, or 0, … */
	__u32 hit;
	__u64 hit_at, hit_end;
	__u32 hit_reason; /* … that of the exit, if it was for nothing else, or 0 */
	__u32 reserved;
	__u64 in_guest; /* that vCPU's VMCB since its entry, or 0: a program has told otherwise */
	__u64 padding;
};

struct vp_account_cpu {
	__u64 waiting; /* vCPUs in its run queue */
	__u64 unthrottled;
	__u64 head; /* slices written */
	struct vp_account_slice slices[VP_SLICES];
};

/* In the place of an exit's reason: to be found by whoever wants to know it. */
#define VP_REASON_UNTOLD 0xffffffffu

/* A vCPU's row of `other_thieves` has a place for each state in which time is taken. */
enum { VP_TAKEN_STATES = 4 };
#define VP_TAKEN_STATE(state) ((state) & (VP_TAKEN_STATES - 1))

/* What did not fit. */
struct vp_account_lost {
	__u64 vcpus, thieves, sites;
};

#endif
