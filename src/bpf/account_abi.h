/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of every vCPU's time: shared by account.bpf.c and collect/programs/account_source.c.
 */
#ifndef VP_BPF_ACCOUNT_ABI_H
#define VP_BPF_ACCOUNT_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/account_terms.h"

/* Flags of struct vp_account_vcpu. */
enum vp_account_flag {
	VP_EXIT_OPEN = 1,    /* between an exit and the next entry; since exit_at … */
	VP_REASON_KNOWN = 2, /* … and `reason` why */
	VP_EXIT_SPLIT = 4,   /* parts of that were neither in the host kernel nor an interrupt's */
	VP_NUMBER_KNOWN = 8,
	VP_SWITCH_IGNORED = 32,
	VP_BLOCKED_ONCE = 64, /* in this exit, at block_at */
	VP_RIP_KNOWN = 128,   /* ip of the exit; cr3 with it */
	VP_POLLS_NOT = 256,   /* its next halt */
	/* The open exit is counted, and not timed: until the next entry the state stays GUEST, but
	 * for events of interrupts, the scheduler and the VMM. */
	VP_EXIT_UNTIMED = 512,
};

enum {
	VP_EXIT_CODES = 256,   /* key of a reason */
	VP_EXIT_REASONS = 64,  /* different ones of a vCPU; the last one takes the rest */
	VP_EXIT_SITES = 512,   /* exit sites that are counted in place: a power of two */
	VP_SITE_BLOCKS = 8192, /* number of memory blocks that evicted sites are kept for, at
				* most */
	/*
	 * Where not every exit is timed: those of a reason of a vCPU so often, all of a reason that
	 * comes less often, and this many after one that slept or was in the VMM. One in
	 * VP_LARGEST_GAP is timed at least.
	 */
	VP_TIMED_EVERY_NS = 8000000,
	VP_TIMED_AFTER_LONG = 64,
	VP_LARGEST_GAP = 1024,
	VP_SQUARE_SHIFT = 4, /* VP_TIMING_UNIT_NS */
	VP_SLICES = 128,     /* of a pCPU, kept while a vCPU waits for it: a power of two */
	VP_TID_BITS = 65536, /* of the filter of threads' ids: a power of two */
	VP_MAX_PCPUS = 8192, /* as Linux has (NR_CPUS): a power of two */
};

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
	__u32 irq_untimed[VP_IRQ_SOURCES]; /* of irq_count: those since the last one in irq_ns */
	__u32 tid, pid, number;
	__u32 state;  /* enum vp_state */
	__u32 base;   /* the one to go back to after a wait or an interrupt */
	__u32 asleep; /* what it is if UNKNOWN turns out to have been sleep */
	__u32 reason, flags;
	__u32 cpu;                        /* whose run queue it waits in */
	__u32 guest_index;                /* of find_identity() */
	__u32 soft;                       /* source + 1 of the softirq that is being handled */
	__u32 busy;                       /* a program that can be interrupted is at work here */
	__u32 reasons;                    /* how many different ones it had */
	__u8 reason_slots[VP_EXIT_CODES]; /* slot in its row of `exits` + 1 */
};

/* Exits for one reason of one vCPU. Kernel time is the rest of the total. */
struct vp_account_exit {
	__u64 count, total, max;
	__u64 poll, vmm, stolen, blocked, waking;
	__u32 reason;
	/* Where not every exit is timed: exits since the last one that was; how many of the next
	 * are not to be; one in how many is; how many of the next are timed in any case. */
	__u32 untimed, skip, gap, all;
	__u32 buckets[VP_BUCKETS];
	__u64 timed_at;
	/* Exits that were timed, with the kernel times x of these in units of 2^VP_SQUARE_SHIFT ns:
	 * the sums of x, of its square, and of w * (w - 1) if an exit stands for w. */
	__u64 timed, sum, squares, weights;
};

struct vp_account_site {
	__u64 ip, cr3, address;
	__u64 count, ns, last; /* last: when it was there */
	__u64 idle, stolen;    /* of ns: asleep; runnable, but without the pCPU */
	__u32 detail_kind, detail;
	__u32 reason;
	__u32 untimed; /* exits whose time in the kernel is not in `ns` */
};

struct vp_site_key {
	__u64 ip, cr3, address;
	__u32 detail_kind, detail;
	__u32 pid, reason;
};

struct vp_site_cost {
	__u64 count, ns, last, idle, stolen, untimed;
};

struct vp_thief_key {
	__u16 vcpu; /* slot of the vCPU whose time it was */
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

/* State of a pCPU; only its own programs write it. */
struct vp_account_here {
	__u32 vcpu;       /* slot + 1 of the vCPU whose thread has it, or 0 */
	__u32 tid;        /* of the thread that has it */
	__u64 irq_at;     /* when the hard interrupt began … */
	__u32 irq_source; /* … that is being handled while that vCPU has the pCPU: source + 1 */
	/* An interrupt that hit the guest and is not counted yet: source + 1, or 0, … */
	__u32 hit;
	__u64 hit_at, hit_end;
	__u32 hit_reason; /* … that of the exit, if it was for nothing else, or 0 */
	__u32 hit_skip;   /* number of the next such interrupts that are not timed */
	__u64 in_guest;   /* that vCPU's VMCB since its entry, or 0: a program has told otherwise */
	__u32 untimed;    /* source + 1 of one that came since then and is not timed, or 0 */
	__u32 padding;
};

struct vp_account_cpu {
	__u64 waiting; /* vCPUs in its run queue */
	__u64 unthrottled;
	__u64 head; /* slices written */
	struct vp_account_slice slices[VP_SLICES];
};

/* In place of an exit's reason, which the reader finds out. */
#define VP_REASON_MISSING 0xffffffffu

/* A vCPU's row of `other_thieves` has a slot for each state in which time is taken. */
enum { VP_TAKEN_STATES = 4 };
#define VP_TAKEN_STATE(state) ((state) & (VP_TAKEN_STATES - 1))

/* Losses. */
struct vp_account_lost {
	__u64 vcpus, thieves, sites;
};

#endif
