/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes records of guest samples from a vCPU's context and the guest's memory. */
#ifndef VP_XEN_GUEST_SAMPLES_H
#define VP_XEN_GUEST_SAMPLES_H

#include "base/macros.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/programs/guest_sampler.h"
#include "xen/context.h"
#include "xen/foreign.h"
#include "xen/xen_guest_current.h"

/* Facts about a domain's kernel; all zeros: unknown. */
struct vp_xen_reported {
	bool known;
	struct vp_xen_kernel kernel;
	VP_VEC(struct vp_guest_current_address)
	cpus;   /* addresses of the pointers to each vCPU's current task */
	int fd; /* for `foreign` */
	struct vp_xen_foreign *foreign;
	struct vp_guest_sampler_counts counts; /* total for all kernels of the domain */
};

/* A sampled context of a vCPU. */
struct vp_xen_raw_sample {
	uint64_t time;
	uint32_t domain, vcpu;
	uint64_t periods; /* periods that the sample represents */
	struct vp_xen_context context;
};

/* The task last recorded for a vCPU. */
struct vp_xen_last {
	uint64_t name; /* hash of its ids and name; 0: none */
	bool user;
};

struct vp_error *vp_xen_reported_init(struct vp_xen_reported *reported,
				      const struct vp_guest_state *state,
				      const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Unmaps everything: the domain is gone, or the facts are no longer valid. */
void vp_xen_reported_forget(struct vp_xen_reported *reported);
/* Makes the sample's record, and the record with the task's name that precedes it; its id is 0 if
 * unchanged since `last`. */
void vp_xen_sample_make(struct vp_xen_reported *reported, const struct vp_xen_raw_sample *raw,
			struct vp_xen_last *last, union vp_any_record *task,
			union vp_any_record *sample);

#endif
