/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data of the vCPU accounting, shared by account.bpf.c and collect/programs/account_source.c. */
#ifndef VP_BPF_ACCOUNT_ABI_H
#define VP_BPF_ACCOUNT_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/account_terms.h"

/* Flags of struct vp_account_vcpu. */
enum vp_account_flag {
	VP_EXIT_OPEN = 1,    /* between an exit and the next entry; started at exit_at … */
	VP_REASON_KNOWN = 2, /* … and `reason` is valid */
	VP_EXIT_SPLIT = 4,   /* parts of it were outside the host kernel, or interrupts */
	VP_NUMBER_KNOWN = 8,
	VP_SWITCH_IGNORED = 32,
	VP_BLOCKED_ONCE = 64, /* it slept in this exit, at block_at */
	VP_RIP_KNOWN = 128,   /* ip is valid; cr3 with it */
	VP_POLLS_NOT = 256,   /* the next halt will not poll */
	/* The open exit is counted but not timed: until the next entry the state stays GUEST,
	 * except for events of interrupts, the scheduler and the VMM. */
	VP_EXIT_UNTIMED = 512,
};

enum {
	VP_EXIT_CODES = 256,   /* number of counter codes of reasons */
	VP_EXIT_REASONS = 64,  /* distinct reasons of a vCPU; the last one collects the rest */
	VP_EXIT_SITES = 512,   /* exit sites counted in place: a power of two */
	VP_SITE_BLOCKS = 8192, /* maximum number of memory blocks in the table of evicted sites */
	/*
	 * Sampled timing: interval per reason and vCPU; reasons with fewer exits are all timed, as
	 * are this many after an exit that slept or was in the VMM; at least one in VP_LARGEST_GAP
	 * is timed.
	 */
	VP_TIMED_EVERY_NS = 8000000,
	VP_TIMED_AFTER_LONG = 64,
	VP_LARGEST_GAP = 1024,
	VP_SQUARE_SHIFT = 4, /* VP_TIMING_UNIT_NS */
	VP_SLICES = 128,     /* kept slices of a pCPU, for waiting vCPUs: a power of two */
	VP_TID_BITS = 65536, /* size of the filter of thread ids: a power of two */
	VP_MAX_PCPUS = 8192, /* Linux's maximum (NR_CPUS): a power of two */
};

/* Only the thread's pCPU, or the holder of its run-queue lock, writes here, one at a time. A copy
 * is consistent if the states sum to since - begin: each change keeps that. */
struct vp_account_vcpu {
	__u64 kvm_vcpu; /* address of the kernel's struct, 0 before the first entry or exit */
	struct vp_vmcb_memo vmcb;
	__u64 begin, since,
	    end; /* start of the accounting; of the present state; end: GONE since then */
	__u64 exit_at, block_at, wait_at;
	__u64 states[VP_STATE_ROOM]; /* ns up to `since` */
	__u64 parts[VP_STATE_ROOM];  /* ns since exit_at, except KERNEL */
	__u64 ip, cr3;               /* guest registers at the exit */
	__u64 address;               /* guest physical address of the access, or VP_NO_ADDRESS */
	__u32 detail_kind, detail;   /* exit detail: enum vp_detail_kind, and a number */
	__u64 exits, wakeups, preemptions;
	__u64 polls,
	    poll_wasted; /* halts that polled; ns of polling before sleeping nevertheless */
	__u64 irq_ns[VP_IRQ_SOURCES], irq_count[VP_IRQ_SOURCES];
	__u32 irq_untimed[VP_IRQ_SOURCES]; /* part of irq_count: since the last one in irq_ns */
	__u32
	    irq_device[VP_IRQ_SOURCES]; /* device that has this row, from VP_IRQ_DEVICE on, or 0 */
	__u32 tid, pid, number;
	__u32 state;  /* enum vp_state */
	__u32 base;   /* state after a wait or an interrupt */
	__u32 asleep; /* state to assign if UNKNOWN turns out to have been sleep */
	__u32 reason, flags;
	__u32 cpu;                        /* run queue in which it waits */
	__u32 guest_index;                /* memo of find_identity() */
	__u32 soft;                       /* source + 1 of the softirq in progress */
	__u32 busy;                       /* an interruptible program is using this struct */
	__u32 reasons;                    /* number of distinct reasons */
	__u8 reason_slots[VP_EXIT_CODES]; /* slot + 1 in its row of `exits` */
	__u64 woken_at;                   /* 0: not seen */
	__u64 wake_ns[VP_WAKE_ROOM];      /* wakeup latencies: sum and number by bucket */
	__u32 wakes[VP_WAKE_ROOM];
};

/* The vCPU gets a pCPU: counts its latency if it was woken. */
static inline __attribute__((always_inline)) void
vp_account_count_wake(struct vp_account_vcpu *vcpu, __u64 now)
{
	__u64 ns = now - vcpu->woken_at;

	if (vcpu->state != VP_STATE_WAKING || !vcpu->woken_at || (__s64)ns < 0)
		return;
	__u32 bucket = vp_wake_bucket_of(ns) & (VP_WAKE_ROOM - 1);
	vcpu->wake_ns[bucket] += ns;
	vcpu->wakes[bucket]++;
	vcpu->woken_at = 0;
}

/* Exits for one reason of one vCPU. Kernel time is the total minus the others. */
struct vp_account_exit {
	__u64 count, total, max;
	__u64 poll, vmm, stolen, blocked, waking;
	__u32 reason;
	/* Sampled timing: exits since the last timed one; number of next exits that are not timed;
	 * sampling rate, one in N; number of next exits that are all timed. */
	__u32 untimed, skip, gap, all;
	__u32 buckets[VP_BUCKETS];
	__u64 timed_at;
	/* Timed exits, with kernel times x in units of 2^VP_SQUARE_SHIFT ns: sums of x, of x
	 * squared, and of w * (w - 1) for exits that represent w. */
	__u64 timed, sum, squares, weights;
};

struct vp_account_site {
	__u64 ip, cr3, address;
	__u64 count, ns, last; /* last: time of the last exit */
	__u64 idle, stolen;    /* part of ns: asleep; runnable without the pCPU */
	__u32 detail_kind, detail;
	__u32 reason;
	__u32 untimed; /* exits whose kernel time is not in `ns` */
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
	__u16 vcpu; /* slot of the waiting vCPU */
	__u8 kind;  /* enum vp_thief_record */
	__u8 state; /* state of the vCPU: WAKING, PREEMPTED, IRQ */
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

/* A slice of a pCPU's time that ended while a vCPU waited for the pCPU, with its owner. */
struct vp_account_slice {
	__u64 end;
	__u32 kind; /* VP_BY_VCPU, VP_BY_TASK, VP_BY_NOBODY */
	__u32 id;   /* id as in struct vp_thief_key */
};

/* State of a pCPU; written only by programs on it. */
struct vp_account_here {
	__u32 vcpu;       /* slot + 1 of the vCPU whose thread is running, or 0 */
	__u32 tid;        /* running thread */
	__u64 irq_at;     /* start of the hard interrupt … */
	__u32 irq_source; /* … in progress while that vCPU has the pCPU: source + 1 */
	/* An interrupt that hit the guest and is not counted yet: source + 1, or 0, … */
	__u32 hit;
	__u64 hit_at, hit_end;
	__u32 hit_reason; /* … reason of its exit, if that had no other purpose, or 0 */
	__u32 hit_skip;   /* number of next such interrupts that are not timed */
	/* Since that vCPU's entry its VMCB, or 1 on Arm; 0: another program has noted the exit. */
	__u64 in_guest;
	__u32 untimed;    /* source + 1 of an interrupt since then that is not timed, or 0 */
	__u32 times_next; /* the next exit is probably timed */
};

struct vp_account_cpu {
	__u64 waiting; /* number of vCPUs in its run queue */
	__u64 unthrottled;
	__u64 head; /* number of slices written */
	struct vp_account_slice slices[VP_SLICES];
};

/* Placeholder for an exit reason that the reader looks up. */
#define VP_REASON_MISSING 0xffffffffu

/* A vCPU's row of `other_thieves` has a slot for each state with thieves. */
enum { VP_STEAL_STATES = 4 };
#define VP_STEAL_STATE(state) ((state) & (VP_STEAL_STATES - 1))

/* Losses. */
struct vp_account_lost {
	__u64 vcpus, thieves, sites;
};

#endif
