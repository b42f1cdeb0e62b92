/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of guest vCPUs at interrupts of dom0's hardware counter (XENPMU). Written from Linux's
 * arch/x86/xen/pmu.c and Xen's arch/x86/cpu/vpmu.c; not tested on a machine with a PMU. */
#ifndef VP_XEN_XEN_PMU_H
#define VP_XEN_XEN_PMU_H

#include <linux/types.h>

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "bpf/xen_pmu_abi.h"
#include "xen/library.h"

struct vp_xen_pmu;

/* Owner of the place; for Xen's own code the domain is unknown. */
enum vp_xen_pmu_owner { VP_XEN_PMU_GUEST, VP_XEN_PMU_DOM0, VP_XEN_PMU_XEN };

struct vp_xen_pmu_totals {
	uint64_t of[VP_XEN_PMU_XEN + 1]; /* enum vp_xen_pmu_owner */
	uint64_t lost;                   /* that found no room */
	uint32_t n_pcpus;                /* on which there were any */
};

enum vp_xen_pmu_owner vp_xen_pmu_owner(const struct vp_xen_pmu_sample *sample);

/* Everything that can be done without interrupting anybody: nothing counts, and Xen's mode is as it
 * was; it is changed for a moment, to see that it can be. `frequency`: interrupts per second of a
 * busy pCPU. Errors: what is missing. */
struct vp_error *vp_xen_pmu_open(const struct vp_xen *xen, uint64_t frequency,
				 struct vp_xen_pmu **ret) VP_MUST_CHECK;
/* From now on the counters are dom0's alone. */
struct vp_error *vp_xen_pmu_begin(struct vp_xen_pmu *pmu) VP_MUST_CHECK;
/* Nothing counts any more, and Xen's mode is as it was. Errors: it is not. */
struct vp_error *vp_xen_pmu_end(struct vp_xen_pmu *pmu) VP_MUST_CHECK;
/* Hands over the places of guests and of Xen itself; those of one vCPU of dom0 in order of time. */
void vp_xen_pmu_drain(struct vp_xen_pmu *pmu,
		      void (*take)(void *context, const struct vp_xen_pmu_sample *sample),
		      void *context);
struct vp_xen_pmu_totals vp_xen_pmu_totals(const struct vp_xen_pmu *pmu);
void vp_xen_pmu_free(struct vp_xen_pmu *pmu);

#endif
