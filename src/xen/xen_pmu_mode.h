/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The owner of Xen's counters, in a file of dom0's kernel: "off"; "self": each domain has its own;
 * "hv": dom0's count in Xen, too; "all": dom0's count everything on the pCPU, and no other domain
 * has any. */
#ifndef VP_XEN_XEN_PMU_MODE_H
#define VP_XEN_XEN_PMU_MODE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/macros.h"

#define VP_XEN_PMU_FOLDER "/sys/hypervisor/pmu"

struct vp_xen_pmu_mode {
	const char *folder; /* VP_XEN_PMU_FOLDER, or that of a test */
	char before[8];     /* as it was found; empty: not read */
	bool changed;       /* by vp_xen_pmu_mode_take() */
};

/* Reads `before`. Errors: no such file, a Xen that lends no counters, mode "off". */
struct vp_error *vp_xen_pmu_mode_read(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;
/* "all", whatever it was. Errors: guests have counters of their own; no rights. */
struct vp_error *vp_xen_pmu_mode_take(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;
/* Reads it, takes it and restores it at once. Errors: those of all three. */
struct vp_error *vp_xen_pmu_mode_try(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;
/* As it was before, if it was changed. */
struct vp_error *vp_xen_pmu_mode_restore(struct vp_xen_pmu_mode *mode) VP_MUST_CHECK;

#endif
