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

/* Location of the counter interrupt; in Xen's own code the domain is unknown. */
enum vp_xen_pmu_owner { VP_XEN_PMU_GUEST, VP_XEN_PMU_DOM0, VP_XEN_PMU_XEN };

struct vp_xen_pmu_totals {
	uint64_t of[VP_XEN_PMU_XEN + 1]; /* enum vp_xen_pmu_owner */
	uint64_t lost;                   /* lost in full buffers */
	uint32_t n_pcpus;                /* number of pCPUs with any */
};

enum vp_xen_pmu_owner vp_xen_pmu_owner(const struct vp_xen_pmu_sample *sample);

/*
 * Prepares everything that has no effect on others: nothing counts yet, and Xen's mode is
 * unchanged, except for a moment, to check that it can be changed. `frequency`: interrupts per
 * second of a busy pCPU. Errors: missing features.
 */
struct vp_error *vp_xen_pmu_open(const struct vp_xen *xen, uint64_t frequency,
				 struct vp_xen_pmu **ret) VP_MUST_CHECK;
/* Starts counting; from now on only dom0 has the counters. */
struct vp_error *vp_xen_pmu_begin(struct vp_xen_pmu *pmu) VP_MUST_CHECK;
/* Stops counting and restores Xen's mode. Errors: not restored. */
struct vp_error *vp_xen_pmu_end(struct vp_xen_pmu *pmu) VP_MUST_CHECK;
/* Emits the samples of guests and of Xen itself; those of one vCPU of dom0 are in order of time. */
void vp_xen_pmu_drain(struct vp_xen_pmu *pmu,
		      void (*take)(void *context, const struct vp_xen_pmu_sample *sample),
		      void *context);
struct vp_xen_pmu_totals vp_xen_pmu_totals(const struct vp_xen_pmu *pmu);
void vp_xen_pmu_free(struct vp_xen_pmu *pmu);

#endif
