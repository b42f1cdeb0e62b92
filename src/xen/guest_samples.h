/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of guests' samples, from where a vCPU was, and from the guest's memory. */
#ifndef VP_XEN_GUEST_SAMPLES_H
#define VP_XEN_GUEST_SAMPLES_H

#include "base/macros.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/programs/guest_sampler.h"
#include "xen/context.h"
#include "xen/foreign.h"
#include "xen/xen_guest_current.h"

/* Facts about a domain's kernel; all zeros: none yet. */
struct vp_xen_reported {
	bool known;
	struct vp_xen_kernel kernel;
	VP_VEC(struct vp_guest_current_address)
	cpus;   /* addresses of each vCPU's pointer to the current
		 * task */
	int fd; /* of `foreign` */
	struct vp_xen_foreign *foreign;
	struct vp_guest_sampler_counts counts; /* over all kernels of the domain */
};

/* Where a vCPU was found. */
struct vp_xen_raw_sample {
	uint64_t time;
	uint32_t domain, vcpu;
	uint64_t periods; /* that the sample stands for */
	struct vp_xen_context context;
};

/* The task whose name was recorded last of a vCPU. */
struct vp_xen_last {
	uint64_t name; /* its numbers and name, hashed; 0: none */
	bool user;
};

struct vp_error *vp_xen_reported_init(struct vp_xen_reported *reported,
				      const struct vp_guest_state *state,
				      const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* The domain is gone, or these facts are no longer valid: unmaps everything of it. */
void vp_xen_reported_forget(struct vp_xen_reported *reported);
/* The sample's record, and the one of the task's name that goes before it; its id is 0 if it is the
 * same as of `last`. */
void vp_xen_sample_make(struct vp_xen_reported *reported, const struct vp_xen_raw_sample *raw,
			struct vp_xen_last *last, union vp_any_record *task,
			union vp_any_record *sample);

#endif
