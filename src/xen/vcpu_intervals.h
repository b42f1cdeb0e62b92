/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of vCPUs over aligned intervals, from trace records sorted by time: the events of
 * schema/interval.h by the rules of bpf/intervals.bpf.c. Nothing here calls Xen.
 *
 * Because the records have times, an interval by time ends exactly when its time is up, and the
 * time of an exit that is open then is divided. A vCPU that is not on a pCPU has no interval of its
 * own for each period: the interval ends at the last border before the vCPU's next event.
 */
#ifndef VP_XEN_VCPU_INTERVALS_H
#define VP_XEN_VCPU_INTERVALS_H

#include "collect/programs/hypervisor_intervals.h"
#include "collect/programs/rings.h"
#include "schema/interval.h"
#include "schema/recipe.h"
#include "schema/records.h"
#include "xen/states.h"

/* A vCPU, by its slot in the states. */
struct vp_xen_subject {
	bool begun, is_hvm;
	bool damaged;    /* records are missing in the present interval */
	uint32_t tid;    /* of the vCPU that has the slot */
	uint32_t number; /* number of closed intervals */
	uint64_t begin;  /* start of the present interval */
	uint64_t n_left; /* VP_UNIT_EXITS: remaining exits */
	uint32_t cpu;    /* last pCPU */
	bool ran;        /* it was on a pCPU */
	uint32_t class;  /* enum vp_exit_class of the open exit … */
	uint64_t kernel; /* … and time in VP_STATE_KERNEL up to its last charge */
	uint64_t counts[VP_COUNTS], before[VP_COUNTS]; /* totals now, and at `begin` */
};

struct vp_xen_intervals {
	struct vp_xen_states states;
	const struct vp_recipe *recipe;
	bool paravirtual; /* entries of PV guests are traced */
	bool (*is_hvm)(void *context, uint32_t domain);
	vp_records_fn take; /* receives whole intervals, sorted by time */
	void *context;
	struct vp_xen_subject *subjects; /* VP_XEN_SLOTS */
	uint64_t border;                 /* VP_UNIT_TIME: the last border that was passed */
	bool losing;                     /* see vp_xen_intervals_lose() */
	uint64_t lost;                   /* intervals with missing records, which are not emitted */
};

/* Trace classes that the recipe's events need. */
uint32_t vp_xen_intervals_mask(const struct vp_recipe *recipe, bool paravirtual);
/* Whether Xen's trace has the event (enum vp_interval_count) for HVM and PVH domains, or for PV
 * domains. */
bool vp_xen_intervals_has(uint32_t index, bool is_hvm, bool paravirtual);
/* The recipe, the functions and `paravirtual` are set. */
void vp_xen_intervals_init(struct vp_xen_intervals *intervals, enum vp_vendor vendor);
void vp_xen_intervals_deinit(struct vp_xen_intervals *intervals);
/* Starts counting at that time; vCPUs are added first by vp_xen_states_seed(). */
void vp_xen_intervals_begin(struct vp_xen_intervals *intervals, uint64_t now);
void vp_xen_intervals_take(struct vp_xen_intervals *intervals, const struct vp_xen_traced *traced);
/* Whether records may be missing from now on: intervals of that time are lost. */
void vp_xen_intervals_lose(struct vp_xen_intervals *intervals, bool losing);
/* All records up to that time were passed. */
void vp_xen_intervals_pass(struct vp_xen_intervals *intervals, uint64_t known);
/* Ends the last interval of the vCPU in the slot, whose domain is gone. */
void vp_xen_intervals_leave(struct vp_xen_intervals *intervals, uint32_t slot, uint64_t now);
/* Ends the last interval of every vCPU. */
void vp_xen_intervals_end(struct vp_xen_intervals *intervals, uint64_t now);

/* The source of these records: Xen's trace buffers. */
const struct vp_hypervisor_intervals_ops *vp_xen_intervals_ops(void);

#endif
