/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the sampling programs, hands over what they record. */
#ifndef VP_COLLECT_PROGRAMS_SAMPLER_H
#define VP_COLLECT_PROGRAMS_SAMPLER_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/identity.h"
#include "collect/programs/rings.h"
#include "collect/programs/trigger.h"
#include "schema/records.h"

struct vp_sampler;

struct vp_kernel_btf;

/*
 * `trigger` must live as long as the sampler.
 */
struct vp_sampler_options {
	const struct vp_trigger *trigger;
	size_t buffer_pages;
	bool by_memory; /* identify guest tasks from guest memory, after vp_sampler_identity() */
	bool with_chains;
	/* No sample can hit a guest, even if perf shows one: in a Xen dom0 it goes by the last
	 * interrupt of Xen's PMU, also for an event that is another one. */
	bool hits_no_guests;
	/* On Intel, samples cost less with it (NULL: without). It must live as long. */
	const struct vp_exit_event *exit_event;
	struct vp_kernel_btf *kernel; /* read before, or NULL */
	vp_records_fn take;
	void *context; /* of `take` */
};
/* Loads and attaches the programs; samples come once the trigger is enabled. Errors: no permission,
 * a kernel without what the programs need. */
struct vp_error *vp_sampler_start(const struct vp_sampler_options *options,
				  struct vp_sampler **ret) VP_MUST_CHECK;
/* The trigger has a new event at that place of its `fds`, of a pCPU that came online. */
struct vp_error *vp_sampler_add(struct vp_sampler *sampler, size_t index) VP_MUST_CHECK;
/* A descriptor that can be read once a buffer is half full; another one after vp_sampler_add(). */
int vp_sampler_fd(const struct vp_sampler *sampler);
/* Hands over everything there is, pCPU by pCPU. */
struct vp_error *vp_sampler_drain(struct vp_sampler *sampler) VP_MUST_CHECK;
/* Records that found the buffer of this pCPU full, from the start until now. */
uint64_t vp_sampler_lost(const struct vp_sampler *sampler, uint32_t pcpu);
void vp_sampler_free(struct vp_sampler *sampler);

/* Enables identification of guest tasks from guest memory, for the sampler. */
struct vp_identity *vp_sampler_identity(struct vp_sampler *sampler);

#endif
