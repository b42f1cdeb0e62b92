/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples Xen guests by the contexts of their vCPUs, and at VM exits for interrupts from the
 * accounting (collect/programs/guest_sampler.h). */
#ifndef VP_XEN_XEN_SAMPLER_H
#define VP_XEN_XEN_SAMPLER_H

#include "collect/programs/guest_sampler.h"
#include "xen/weights.h"

const struct vp_guest_sampler_ops *vp_guest_sampler_xen(void);

/* Whether the accounting must report the vCPUs' run time. If so, after its first call samples are
 * emitted only up to the time for which it has reported all. */
bool vp_xen_sampler_wants_account(const struct vp_guest_sampler *sampler);
/* … and VM exits for interrupts. */
bool vp_xen_sampler_wants_exits(const struct vp_guest_sampler *sampler);

/* Run time of a vCPU from the accounting at a time; false: unknown. */
struct vp_xen_runner {
	bool (*ran)(void *context, uint32_t domain, uint32_t vcpu, uint64_t time,
		    struct vp_xen_ran *ret);
	void *context;
};

/* Processes the contexts read up to `time`, and RIPs of counter interrupts; calls must be in order
 * of time, also with the next function. Returns the time of the next one, or UINT64_MAX. */
uint64_t vp_xen_sampler_weigh(struct vp_guest_sampler *sampler, uint64_t time,
			      struct vp_xen_runner runner);
/* A VM exit for an interrupt, after `ran` ns of run time. */
struct vp_xen_exit {
	uint32_t domain, vcpu, pcpu;
	uint64_t time, ran, ip;
};
void vp_xen_sampler_exit(struct vp_guest_sampler *sampler, const struct vp_xen_exit *exit);
/* All exits before that time were passed on; UINT64_MAX: no more will follow. */
void vp_xen_sampler_known(struct vp_guest_sampler *sampler, uint64_t time,
			  struct vp_xen_runner runner);

#endif
