/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aligned intervals: shared by intervals.bpf.c and collect/programs/intervals_source.c. */
#ifndef VP_BPF_INTERVALS_ABI_H
#define VP_BPF_INTERVALS_ABI_H

#include <linux/types.h>

#include "bpf/vmcb_memo.h"
#include "schema/interval.h"

enum vp_subject_state { VP_SUBJECT_BLOCKED, VP_SUBJECT_RUNNING, VP_SUBJECT_WAITING };

enum vp_subject_flag {
	VP_SUBJECT_IN_GUEST = 1,     /* since entered_at */
	VP_SUBJECT_IN_EXIT = 2,      /* since exited_at, for `class` */
	VP_SUBJECT_SEEN = 4,         /* it had a pCPU */
	VP_SUBJECT_OVER = 8,         /* its last interval was closed */
	VP_SUBJECT_ENTERED = 16,     /* its guest was entered */
	VP_SUBJECT_WAS_OVERDUE = 32, /* its interval was closed without the trigger */
	VP_SUBJECT_CAME = 64, /* it is new: its trigger is opened later, and has not fired yet */
};

/* Where sets take turns: asks the pCPU's switcher in user space to switch this one on. */
struct vp_set_request {
	__u64 set; /* from 0 */
};

/* How much of an interval each set was live, as far as its sub-intervals are over. */
struct vp_set_shares {
	__u32 turn;  /* the set that is to be on */
	__u32 parts; /* sub-intervals closed since the interval began */
	__u32 busy;  /* of these, that the subject ran in */
	__u32 reserved;
	__u64 ran_before;                  /* of the subject, when the sub-interval began */
	__u64 running_before[VP_SETS_MAX]; /* and of each set's first counter */
	__u64 sums[VP_SETS_MAX];           /* shares of `busy` sub-intervals, billionths */
};

/* A counter of perf's: the value of bpf_perf_event_read_value(), or a sum of differences of it. */
struct vp_reading {
	__u64 value, enabled, running;
};

/* Subject of intervals: a vCPU thread, a task, a pCPU. Sums only grow; an interval is their growth
 * since `before`. Only the subject's own pCPU writes here, except wakeups. */
struct vp_subject {
	__u32 tid, pid, vcpu;
	__u32 state, flags; /* enum vp_subject_state, vp_subject_flag */
	__u32 cpu;          /* that it had last */
	__u32 class;        /* enum vp_exit_class */
	__u32 number;       /* of intervals closed */
	char comm[16];
	__u64 begin;      /* of the present interval */
	__u64 due_at;     /* of VP_UNIT_TIME: the end of the sub-interval … */
	__u64 ends_at;    /* … and of the interval */
	__u64 exits_left; /* of VP_UNIT_EXITS, in the sub-interval */
	__u64 since;      /* of `state` */
	__u64 entered_at, exited_at;
	__u64 away; /* ns without a pCPU since exited_at */
	struct vp_vmcb_memo vmcb;
	__u64 counts[VP_COUNTS], counts_before[VP_COUNTS];
	struct vp_reading counters[VP_COUNTERS_MAX], counters_before[VP_COUNTERS_MAX];
	__u64 guest[VP_GUEST_COUNT], guest_before[VP_GUEST_COUNT];
	__u32 guest_known, guest_known_before; /* bits */
	struct vp_set_shares sets;
};

/* Where a vCPU's guest kernel counts, in the VMM's memory; 0: not known. */
struct vp_guest_counters {
	__u64 hva[VP_GUEST_COUNT];
	__u64 narrow; /* bits: 4 bytes, not 8 */
	/* Bits: the agent's programs count there, as long as there is a certain number elsewhere.
	 */
	__u64 marked;
	__u64 marker, marker_hva;
};

/* An event of the recipe: where its value comes from. */
struct vp_event_origin {
	__u8 source, index; /* enum vp_event_source */
};

/* Action of a run of the program `do_here`. */
enum vp_interval_command {
	VP_BEGIN_HERE = 1, /* on the pCPU where it runs: whoever has it */
	VP_FORGET_HERE,    /* its counters are to be others, which have counted nothing yet */
	VP_END_HERE,
	VP_END_SUBJECT,  /* the one whose slot comes with it; it has no pCPU */
	VP_SWITCHES_HERE /* the thread that comes with it switches the sets of this pCPU */
};

/* Losses. */
struct vp_intervals_lost {
	__u64 intervals; /* that found no room */
	__u64 subjects;  /* that there was no slot for */
};

#endif
