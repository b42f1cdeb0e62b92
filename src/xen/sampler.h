/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of Xen's guests by the contexts of their vCPUs (collect/guest_sampler.h). */
#ifndef VP_XEN_SAMPLER_H
#define VP_XEN_SAMPLER_H

#include "collect/guest_sampler.h"

const struct vp_guest_sampler_ops *vp_guest_sampler_xen(void);

/*
 * How many periods of CPU time a sample stands for that is taken now: those that have passed since
 * the one before, rounded; *accounted is moved on by them. 0: it is not due yet.
 */
uint64_t vp_xen_periods_due(uint64_t cpu_time, uint64_t period, uint64_t *accounted);

#endif
