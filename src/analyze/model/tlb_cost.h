/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost of TLB misses in a VM, by regression of cycles per instruction of its intervals. */
#ifndef VP_ANALYZE_MODEL_TLB_COST_H
#define VP_ANALYZE_MODEL_TLB_COST_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/model/intervals.h"
#include "schema/vm.h"

struct vp_tlb_cost {
	size_t intervals;
	double percent; /* percent of the cycles of the VM's vCPUs: the part of TLB misses in the
			   mean CPI */
	double error;   /* standard error of `percent`: sum over all kinds of misses */
	double misses;  /* per 1000 instructions */
	double each;    /* cycles per miss */
};

/*
 * Regression of CPI on all events of the recipe. False: no cycles, instructions or TLB misses of
 * the VM, fewer than ten complete intervals per event, or misses that depend linearly on other
 * events.
 */
bool vp_tlb_cost_of_vm(const struct vp_interval_recording *rec, const struct vp_vm *vm,
		       struct vp_tlb_cost *ret);

#endif
