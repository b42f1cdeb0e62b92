/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the sampling programs, hands over what they record. */
#ifndef VP_COLLECT_SAMPLER_H
#define VP_COLLECT_SAMPLER_H

#include <stdint.h>

#include "base/error.h"
#include "collect/exit_event.h"
#include "collect/guest_reader.h"
#include "collect/rings.h"
#include "collect/trigger.h"
#include "schema/records.h"

struct vp_sampler;

/*
 * `trigger` must live as long as the sampler.
 */
struct vp_sampler_options {
	const struct vp_trigger *trigger;
	size_t buffer_pages;
	bool by_memory; /* ask guests' memory who runs, once vp_sampler_identify() has said how */
	bool with_chains;
	/* On Intel, samples cost less with it (NULL: without). It must live as long. */
	const struct vp_exit_event *exit_event;
	vp_records_taker take;
	void *context; /* of `take` */
};
/* Loads and attaches the programs; samples come once the trigger is enabled. Errors: no permission,
 * a kernel without what the programs need. */
struct vp_error *vp_sampler_start(const struct vp_sampler_options *options,
				  struct vp_sampler **ret) VP_MUST_CHECK;
/* A descriptor that can be read once a buffer is half full. */
int vp_sampler_fd(const struct vp_sampler *sampler);
/* Hands over everything there is, pCPU by pCPU. */
struct vp_error *vp_sampler_drain(struct vp_sampler *sampler) VP_MUST_CHECK;
/* Records that found the buffer of this pCPU full, from the start until now. */
uint64_t vp_sampler_lost(const struct vp_sampler *sampler, uint32_t pcpu);
void vp_sampler_free(struct vp_sampler *sampler);

/*
 * Has the samples of a VM's guest named by its memory from now on; `number` is the VM's, below
 * VP_IDENTITY_VMS. Errors: more VMs, vCPUs or memory slots than there is room for.
 */
struct vp_error *vp_sampler_identify(struct vp_sampler *sampler, uint32_t number,
				     const struct vp_guest_state *state,
				     const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* The same, when only the VM's memory slots have changed. */
struct vp_error *vp_sampler_identify_memory(struct vp_sampler *sampler, uint32_t number,
					    const struct vp_guest_state *state,
					    const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Ends that for the VM of VMM process `pid`. */
void vp_sampler_forget(struct vp_sampler *sampler, uint32_t pid);

struct vp_sampler_identity_counts {
	uint64_t good, failed; /* samples that were named so, and that could not be */
	uint64_t nowhere;      /* of these, because the task was in none of the memory slots */
};
struct vp_sampler_identity_counts
vp_sampler_identity_counts(const struct vp_sampler *sampler, uint32_t pid,
			   const struct vp_guest_finding *finding);

#endif
