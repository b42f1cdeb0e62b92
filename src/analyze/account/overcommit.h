/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Overcommit: more vCPUs wanted to run than there are pCPUs that they may use. The account's
 * intervals (a second each) have each vCPU's demand. Demand above the time of the pCPUs had to be
 * lost by some vCPU, wherever they ran; losses beyond that were avoidable on other pCPUs. Demand
 * may rise and fall within an interval, so this is a lower bound. */
#ifndef VP_ANALYZE_ACCOUNT_OVERCOMMIT_H
#define VP_ANALYZE_ACCOUNT_OVERCOMMIT_H

#include "base/intern.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/vm.h"

/* vCPUs that may use the same pCPUs. */
struct vp_overcommit_set {
	uint64_t *pcpus;         /* a bit for each; NULL: all that there are */
	uint32_t n_pcpus;        /* how many */
	VP_VEC(uint32_t) within; /* the crowds that may use no others, itself one of them */
	uint64_t wanted, taken;  /* in the interval: wanted to run; taken by vCPUs, ns … */
	double shed;             /* … demand that there was no pCPU for */
	double left;             /* … share of `taken` that is not explained yet */
	double overcommitted_ns,
	    overcommitted_wanted; /* in all: while more wanted to run, ns; what wanted to */
};

/* A vCPU's time that another one took, in the interval. */
struct vp_overcommit_theft {
	uint32_t set;
	uint64_t ns;
	uint32_t theft; /* as it was given */
};

struct vp_overcommit {
	uint32_t pcpus; /* of the host; 0: not known, and nothing is worked out */
	struct vp_intern lists;
	VP_VEC(struct vp_overcommit_set) sets; /* by number of their list */
	VP_VEC(uint32_t) by_size;
	uint64_t time, begin, end;
	VP_VEC(struct vp_overcommit_theft) thefts;
};

void vp_overcommit_deinit(struct vp_overcommit *overcommit);
/* Whether the record is not of the interval at hand, which is to be closed before it is taken. */
bool vp_overcommit_is_next(const struct vp_overcommit *overcommit, uint64_t time);
void vp_overcommit_take(struct vp_overcommit *overcommit, const struct vp_vm *vm,
			const struct vp_vcpu_account *record);
/* Time of the VM's vCPU that another vCPU took; `theft` is the caller's number for it. */
void vp_overcommit_take_theft(struct vp_overcommit *overcommit, const struct vp_vm *vm,
			      const struct vp_thief *record, uint32_t theft);
/* Ends the interval: adds to crowded() of each theft what could not be avoided of it. */
void vp_overcommit_close(struct vp_overcommit *overcommit,
			 void (*overcommitted)(void *context, uint32_t theft, uint64_t ns),
			 void *context);

/* The overcommit of a VM: the pCPUs for which the demand of all vCPUs was too large. */
struct vp_overcommit_of_vm {
	uint32_t pcpus;
	double wanted; /* vCPUs, while that was so, on average */
	double ns;     /* for that long */
};
/* Whether it was so. */
bool vp_overcommit_of_vm(const struct vp_overcommit *overcommit, const struct vp_vm *vm,
			 struct vp_overcommit_of_vm *ret);

#endif
