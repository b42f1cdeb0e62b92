/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differences of the time-stamp counters of guests' vCPUs from dom0's, by Xen's system time as
 * their agents report it (vchan/xen_time.h). */
#ifndef VP_XEN_XEN_COUNTERS_H
#define VP_XEN_XEN_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/vm.h"
#include "vchan/xen_time.h"

struct vp_xen_counters;

/* Errors: dom0's kernel hides its memory. */
struct vp_error *vp_xen_counters_open(struct vp_xen_counters **ret) VP_MUST_CHECK;
void vp_xen_counters_close(struct vp_xen_counters *counters);
/* Whether the VM's domain is gone, or about to go: while its pages are mapped, it cannot. */
bool vp_xen_counters_is_gone(const struct vp_xen_counters *counters,
			     const struct vp_vm *vm) VP_MUST_CHECK;
/*
 * Sets the vCPU's counter. Returns by how much times at that of `guest` were wrong before, in ns; 0
 * if the counter was not known. That is the error of what was converted since the last call.
 */
uint64_t vp_xen_counters_update(struct vp_xen_counters *counters, const struct vp_xen_time *guest,
				struct vp_vcpu *vcpu);

/* The same with dom0's times, one at least. */
uint64_t vp_xen_counters_relate(const struct vp_xen_time *own, size_t count,
				const struct vp_xen_time *guest, struct vp_vcpu *vcpu);

#endif
