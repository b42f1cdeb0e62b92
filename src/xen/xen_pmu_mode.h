/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Assignment of hardware counters in Xen, from a file of dom0's kernel. "off"; "self": each domain
 * has its own; "hv": dom0's also count in Xen; "all": dom0's count everything on the pCPU, and no
 * other domain has any.
 */
#ifndef VP_XEN_XEN_PMU_MODE_H
#define VP_XEN_XEN_PMU_MODE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/macros.h"

#define VP_XEN_PMU_FOLDER "/sys/hypervisor/pmu"

struct vp_xen_pmu_mode {
	const char *folder; /* VP_XEN_PMU_FOLDER; differs in tests */
	char before[8];     /* original mode; empty: not read */
	bool changed;       /* changed by vp_xen_pmu_mode_take() */
};

/* Reads `before`. Errors: no such file, a Xen without counters for guests, mode "off". */
struct vp_error *vp_xen_pmu_mode_read(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;
/* Sets "all". Errors: guests have counters of their own; no permission. */
struct vp_error *vp_xen_pmu_mode_take(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;
/* Reads, sets and restores the mode. Errors: those of all three. */
struct vp_error *vp_xen_pmu_mode_try(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;
/* Restores the original mode, if changed. */
struct vp_error *vp_xen_pmu_mode_restore(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;

#endif
