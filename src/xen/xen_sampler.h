/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of Xen's guests by the contexts of their vCPUs, and at exits in the account for
 * interrupts (collect/programs/guest_sampler.h). */
#ifndef VP_XEN_XEN_SAMPLER_H
#define VP_XEN_XEN_SAMPLER_H

#include "collect/programs/guest_sampler.h"
#include "xen/weights.h"

const struct vp_guest_sampler_ops *vp_guest_sampler_xen(void);

/* Whether the account has to report the vCPUs' run time. If so, from its first call on samples are
 * handed over only as far as it has told all. */
bool vp_xen_sampler_wants_account(const struct vp_guest_sampler *sampler);
/* … and where they left their guests for interrupts. */
bool vp_xen_sampler_wants_exits(const struct vp_guest_sampler *sampler);

/* The account's data of a vCPU at a time; false: none. */
struct vp_xen_runner {
	bool (*ran)(void *context, uint32_t domain, uint32_t vcpu, uint64_t time,
		    struct vp_xen_ran *ret);
	void *context;
};

/* In order of time with the next function: the contexts that were read up to `time`, and the places
 * at which counters interrupted vCPUs. Returns when the next one was, or UINT64_MAX yet. */
uint64_t vp_xen_sampler_weigh(struct vp_guest_sampler *sampler, uint64_t time,
			      struct vp_xen_runner runner);
/* A vCPU, which had had the pCPU for `ran` ns, left its guest at that place for an interrupt. */
struct vp_xen_exit {
	uint32_t domain, vcpu, pcpu;
	uint64_t time, ran, ip;
};
void vp_xen_sampler_exit(struct vp_guest_sampler *sampler, const struct vp_xen_exit *exit);
/* All exits before that time were passed on; UINT64_MAX: no more will come. */
void vp_xen_sampler_known(struct vp_guest_sampler *sampler, uint64_t time,
			  struct vp_xen_runner runner);

#endif
