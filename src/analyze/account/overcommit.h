/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Overcommit: more runnable vCPUs than pCPUs that they may use. Intervals of the accounting (one
 * second each) have each vCPU's demand. Demand beyond the capacity of the pCPUs had to be lost by
 * some vCPU, with any placement; other losses were avoidable. Demand may vary within an interval,
 * so this is a lower bound.
 */
#ifndef VP_ANALYZE_ACCOUNT_OVERCOMMIT_H
#define VP_ANALYZE_ACCOUNT_OVERCOMMIT_H

#include "base/intern.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/vm.h"

/* vCPUs that may use the same set of pCPUs. */
struct vp_overcommit_set {
	uint64_t *pcpus;         /* one bit each; NULL: all */
	uint32_t n_pcpus;        /* number of them */
	VP_VEC(uint32_t) within; /* sets that are subsets of this one, itself included */
	uint64_t wanted, taken;  /* in the interval, ns: demand; time taken by vCPUs … */
	double shed;             /* … demand beyond capacity */
	double left;             /* … share of `taken` that is not explained so far */
	double overcommitted_ns,
	    overcommitted_wanted; /* total: time and demand of overcommitted intervals, ns */
};

/* A theft by another vCPU in the interval. */
struct vp_overcommit_theft {
	uint32_t set;
	uint64_t ns;
	uint32_t theft; /* number given by the caller */
};

struct vp_overcommit {
	uint32_t pcpus; /* number of pCPUs of the host; 0: unknown, nothing is computed */
	struct vp_intern lists;
	VP_VEC(struct vp_overcommit_set) sets; /* by number of the affinity list */
	VP_VEC(uint32_t) by_size;
	uint64_t time, begin, end;
	VP_VEC(struct vp_overcommit_theft) thefts;
};

void vp_overcommit_deinit(struct vp_overcommit *overcommit);
/* Whether the record belongs to the next interval; the present one must be closed first. */
bool vp_overcommit_is_next(const struct vp_overcommit *overcommit, uint64_t time);
void vp_overcommit_take(struct vp_overcommit *overcommit, const struct vp_vm *vm,
			const struct vp_vcpu_account *record);
/* Notes time of a VM's vCPU taken by another vCPU; `theft`: the caller's number for it. */
void vp_overcommit_take_theft(struct vp_overcommit *overcommit, const struct vp_vm *vm,
			      const struct vp_thief *record, uint32_t theft);
/* Ends the interval: calls the function for each theft with its unavoidable part. */
void vp_overcommit_close(struct vp_overcommit *overcommit,
			 void (*overcommitted)(void *context, uint32_t theft, uint64_t ns),
			 void *context);

/* Overcommit of a VM: the pCPUs on which total demand was too large. */
struct vp_overcommit_of_vm {
	uint32_t pcpus;
	double wanted; /* average number of runnable vCPUs meanwhile */
	double ns;     /* duration */
};
/* Whether there was any. */
bool vp_overcommit_of_vm(const struct vp_overcommit *overcommit, const struct vp_vm *vm,
			 struct vp_overcommit_of_vm *ret);

#endif
