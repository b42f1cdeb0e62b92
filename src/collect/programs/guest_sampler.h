/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of guests where this host's own samples do not hit them, because its kernel is a guest of
 * the hypervisor as well. Each vCPU is sampled by its own CPU time.
 */
#ifndef VP_COLLECT_PROGRAMS_GUEST_SAMPLER_H
#define VP_COLLECT_PROGRAMS_GUEST_SAMPLER_H

#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "schema/guest_sampling.h"
#include "schema/schema.h"

struct vp_guest_sampler;

/* Places at which guests are sampled, in addition to reading their vCPUs' contexts. */
enum vp_guest_interrupts {
	VP_INTERRUPTS_NONE,
	VP_INTERRUPTS_EXITS,    /* at exits for interrupts, from the account */
	VP_INTERRUPTS_COUNTERS, /* where a hardware counter interrupted them */
};

struct vp_guest_sampler_options {
	uint64_t period_ns;                  /* of a vCPU's CPU time */
	uint64_t poll_ns;                    /* how often vCPUs are looked at */
	enum vp_guest_interrupts interrupts; /* other than _NONE needs an account */
};

struct vp_guest_sampler_totals {
	uint64_t samples;       /* contexts that were read */
	uint64_t late;          /* periods beyond one that samples stand for */
	uint64_t pause, max_ns; /* how long vCPUs stood still for that, ns; and the longest */
	uint64_t unsampled_ns;  /* CPU time that no sample stands for */
	uint64_t lost;          /* samples there was no room for */
	/* Totals of samples at interrupts: the number of samples, the periods that these stand for,
	 * and the periods without a known process. */
	uint64_t exits, exit_periods, unknown_periods;
	/* Interrupts of counters that hit this host's own vCPUs, and the hypervisor; and on how
	 * many pCPUs there were any. */
	uint64_t own, hypervisor;
	unsigned pcpus;
	/* Why processes of some guests are not known, or NULL; the sampler's. */
	const char *problem;
};

/* How many samples of a VM were named by its memory, and how many were not. */
struct vp_guest_sampler_counts {
	uint64_t named, unnamed;
};

struct vp_guest_sampler_ops {
	enum vp_guest_sampling_method method;
	struct vp_error *(*open)(const struct vp_guest_sampler_options *options,
				 struct vp_guest_sampler **ret);
	struct vp_error *(*begin)(struct vp_guest_sampler *sampler);
	/* Errors: something is not as it was before. */
	struct vp_error *(*end)(struct vp_guest_sampler *sampler);
	/* Hands over the records that have gathered, in order of time: guest_task, guest_sample. */
	void (*drain)(struct vp_guest_sampler *sampler,
		      void (*take)(void *context, union vp_any_record *record), void *context);
	/* How the current tasks of the VM's vCPUs are read; no more. */
	struct vp_error *(*identify)(struct vp_guest_sampler *sampler,
				     const struct vp_guest_state *state,
				     const struct vp_guest_finding *finding);
	void (*forget)(struct vp_guest_sampler *sampler, uint32_t pid);
	struct vp_guest_sampler_totals (*totals)(struct vp_guest_sampler *sampler);
	struct vp_guest_sampler_counts (*counts)(struct vp_guest_sampler *sampler, uint32_t pid);
	void (*free)(struct vp_guest_sampler *sampler);
};

#endif
