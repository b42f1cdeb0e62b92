/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data of aligned intervals, shared by intervals.bpf.c and collect/programs/intervals_source.c. */
#ifndef VP_BPF_INTERVALS_ABI_H
#define VP_BPF_INTERVALS_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/interval.h"

enum vp_subject_state { VP_SUBJECT_BLOCKED, VP_SUBJECT_RUNNING, VP_SUBJECT_WAITING };

enum vp_subject_flag {
	VP_SUBJECT_IN_GUEST = 1,     /* since entered_at */
	VP_SUBJECT_IN_EXIT = 2,      /* since exited_at, for `class` */
	VP_SUBJECT_RAN = 4,          /* it was on a pCPU */
	VP_SUBJECT_OVER = 8,         /* its last interval was closed */
	VP_SUBJECT_ENTERED = 16,     /* its guest was entered */
	VP_SUBJECT_WAS_OVERDUE = 32, /* its interval was closed without its event */
	VP_SUBJECT_NEW = 64,         /* new: its event is opened later, and has not fired yet */
};

/* Multiplexing: request to the pCPU's switcher in user space to enable a set. */
struct vp_set_request {
	__u64 set; /* set number, from 0 */
};

/* Live share of each set in the present interval, from its completed sub-intervals. */
struct vp_set_shares {
	__u32 turn;  /* the set to enable */
	__u32 parts; /* completed sub-intervals of the interval */
	__u32 busy;  /* those in which the subject ran */
	__u32 reserved;
	__u64 ran_before; /* run time of the subject at the start of the sub-interval */
	__u64
	    running_before[VP_SETS_MAX]; /* running time of each set's first counter at that time */
	__u64 sums[VP_SETS_MAX];         /* sums of shares of `busy` sub-intervals, billionths */
};

/* A perf counter: value of bpf_perf_event_read_value(), or a sum of differences. */
struct vp_reading {
	__u64 value, enabled, running;
};

/* Subject of intervals: a vCPU thread, a task, a pCPU. Totals only grow; an interval is the
 * difference to `before`. Written only by the subject's own pCPU, except wakeups. */
struct vp_subject {
	__u32 tid, pid, vcpu;
	__u32 state, flags; /* enum vp_subject_state, vp_subject_flag */
	__u32 cpu;          /* last pCPU */
	__u32 class;        /* enum vp_exit_class */
	__u32 number;       /* number of closed intervals */
	char comm[16];
	__u64 begin;      /* start of the present interval */
	__u64 due_at;     /* VP_UNIT_TIME: end of the sub-interval … */
	__u64 ends_at;    /* … and of the interval */
	__u64 exits_left; /* VP_UNIT_EXITS: remaining in the sub-interval */
	__u64 since;      /* start of `state` */
	__u64 entered_at, exited_at;
	__u64 away; /* ns without a pCPU since exited_at */
	struct vp_vmcb_memo vmcb;
	__u64 counts[VP_COUNTS], counts_before[VP_COUNTS];
	struct vp_reading counters[VP_COUNTERS_MAX], counters_before[VP_COUNTERS_MAX];
	__u64 guest[VP_GUEST_COUNT], guest_before[VP_GUEST_COUNT];
	__u32 guest_known, guest_known_before; /* bits */
	struct vp_set_shares sets;
};

/* Addresses of a vCPU's guest counters in the VMM's memory; 0: unknown. */
struct vp_guest_counters {
	__u64 hva[VP_GUEST_COUNT];
	__u64 narrow; /* bits: counters of 4 bytes instead of 8 */
	/* Bits: counters of the agent's programs, valid while the marker is at marker_hva. */
	__u64 marked;
	__u64 marker, marker_hva;
};

/* Source of the value of a recipe's event. */
struct vp_event_origin {
	__u8 source, index; /* enum vp_event_source */
};

/* Commands of the program `do_here`. */
enum vp_interval_command {
	VP_BEGIN_HERE = 1, /* on the pCPU where it runs, for any subject */
	VP_FORGET_HERE,    /* counters of this pCPU are replaced and start at 0 */
	VP_END_HERE,
	VP_END_SUBJECT,  /* the subject in the argument, which is not running */
	VP_SWITCHES_HERE /* the thread in the argument multiplexes sets on this pCPU */
};

/* Losses. */
struct vp_intervals_lost {
	__u64 intervals; /* intervals that did not fit into the ring */
	__u64 subjects;  /* subjects that did not get a slot */
};

#endif
