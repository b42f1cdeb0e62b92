/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events around the borders of a window. An accounting record is a sum over an interval of about a
 * second. If the recording also has the events that make up this sum (analyze/report/event_cuts.h),
 * they show how much of it is before, in and after the window.
 */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_CUTS_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_CUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/common/key_set.h"
#include "analyze/common/window.h"
#include "base/map.h"
#include "base/vec.h"

/* Kinds of amounts. */
enum vp_cut {
	/* Time of a vCPU, ns. */
	VP_CUT_RUNNING, /* with the pCPU: the next three */
	VP_CUT_GUEST,
	VP_CUT_HOST, /* in KVM or the VMM */
	VP_CUT_IRQ,  /* interrupts, not part of GUEST and HOST */
	VP_CUT_STOLEN,
	VP_CUT_THROTTLED, /* if it is known apart from STOLEN */
	VP_CUT_WAKING,
	VP_CUT_HALTED,
	VP_CUT_BLOCKED,
	/* Numbers of events. */
	VP_CUT_EXITS,
	VP_CUT_WAKEUPS,
	VP_CUT_PREEMPTIONS,
	/* A thief: time, ns, and number of turns. `state`, `type`, `number` and `owner` as in
	 * struct vp_thief. */
	VP_CUT_THIEF,
	VP_CUT_TURNS,
	/* Exits of one reason (`number`; `type`: vendor), at their end: number, and time in each
	 * part, ns; number by bucket (`state`). */
	VP_CUT_REASON,
	VP_CUT_REASON_HOST,
	VP_CUT_REASON_STOLEN,
	VP_CUT_REASON_WAKING,
	VP_CUT_REASON_ASLEEP,
	VP_CUT_REASON_BUCKET,
};

struct vp_cut_key {
	uint64_t interval; /* end of the interval */
	uint32_t vm, vcpu;
	uint32_t cut; /* enum vp_cut */
	uint32_t state, type, number, owner;
	uint32_t reserved; /* 0 */
};

struct vp_cut_amount {
	uint64_t before; /* before the window */
	uint64_t until;  /* before the end of the window */
	uint64_t all;    /* in the interval */
};

struct vp_cut_interval {
	uint64_t begin, end;
};

struct vp_cut_intervals {
	VP_VEC(struct vp_cut_interval) at; /* of a vCPU, in order of time */
};

struct vp_account_cuts {
	struct vp_window window;
	struct vp_key_set keys;
	VP_VEC(struct vp_cut_amount) amounts;
	bool has_events;             /* some were added */
	struct vp_map index_of_vcpu; /* index in `vcpus`, by VM and vCPU */
	VP_VEC(struct vp_cut_intervals) vcpus;
};

void vp_account_cuts_init(struct vp_account_cuts *cuts, const struct vp_window *window);
void vp_account_cuts_deinit(struct vp_account_cuts *cuts);
/* Adds an interval of a vCPU; in order of time. */
void vp_account_cuts_add_interval(struct vp_account_cuts *cuts, uint32_t vm, uint32_t vcpu,
				  uint64_t begin, uint64_t end);
/* The vCPU's interval that ends at or after `time`; NULL: none. */
const struct vp_cut_interval *vp_account_cuts_interval(const struct vp_account_cuts *cuts,
						       uint32_t vm, uint32_t vcpu, uint64_t time);
/* Whether a border of the window lies between. */
bool vp_account_cuts_between(const struct vp_account_cuts *cuts, uint64_t begin, uint64_t end);

/* Adds the time from `begin` to `end`; subtracts it; adds `count` events at `time`. */
void vp_account_cuts_add(struct vp_account_cuts *cuts, const struct vp_cut_key *key, uint64_t begin,
			 uint64_t end);
void vp_account_cuts_subtract(struct vp_account_cuts *cuts, const struct vp_cut_key *key,
			      uint64_t begin, uint64_t end);
void vp_account_cuts_count(struct vp_account_cuts *cuts, const struct vp_cut_key *key,
			   uint64_t time, uint64_t count);
/* NULL: none. Valid until the next call. */
const struct vp_cut_amount *vp_account_cuts_find(struct vp_account_cuts *cuts,
						 const struct vp_cut_key *key);

#endif
