/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples guests on hosts whose own samples do not hit them, because the host kernel is itself a
 * guest of the hypervisor. Each vCPU is sampled by its own CPU time. */
#ifndef VP_COLLECT_PROGRAMS_GUEST_SAMPLER_H
#define VP_COLLECT_PROGRAMS_GUEST_SAMPLER_H

#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "schema/guest_sampling.h"
#include "schema/schema.h"

struct vp_guest_sampler;

/* Interrupts at which guests are sampled, in addition to reading vCPU contexts. */
enum vp_guest_interrupts {
	VP_INTERRUPTS_NONE,
	VP_INTERRUPTS_EXITS,    /* VM exits for interrupts, from the accounting */
	VP_INTERRUPTS_COUNTERS, /* interrupts of a hardware counter */
};

struct vp_guest_sampler_options {
	uint64_t period_ns;                  /* of a vCPU's CPU time */
	uint64_t poll_ns;                    /* interval of polling the vCPUs */
	enum vp_guest_interrupts interrupts; /* other than _NONE: needs accounting */
};

struct vp_guest_sampler_totals {
	uint64_t samples;       /* number of contexts read */
	uint64_t late;          /* periods represented by samples, beyond one per sample */
	uint64_t pause, max_ns; /* pause of vCPUs for these, total and maximum, ns */
	uint64_t unsampled_ns;  /* CPU time not represented by samples */
	uint64_t lost;          /* samples lost in full buffers */
	/* Samples at interrupts: number of samples, periods that they represent, and periods
	 * without a known process. */
	uint64_t exits, exit_periods, unknown_periods;
	/* Counter interrupts in this host's own vCPUs and in the hypervisor, and number of pCPUs
	 * with any. */
	uint64_t own, hypervisor;
	unsigned pcpus;
	/* Reason for unknown processes in some guests, owned by the sampler; or NULL. */
	const char *problem;
};

/* Samples of a VM with and without a process from its memory. */
struct vp_guest_sampler_counts {
	uint64_t named, unnamed;
};

struct vp_guest_sampler_ops {
	enum vp_guest_sampling_method method;
	struct vp_error *(*open)(const struct vp_guest_sampler_options *options,
				 struct vp_guest_sampler **ret);
	struct vp_error *(*begin)(struct vp_guest_sampler *sampler);
	/* Errors: something could not be restored. */
	struct vp_error *(*end)(struct vp_guest_sampler *sampler);
	/* Emits the collected records, sorted by time: guest_task, guest_sample. */
	void (*drain)(struct vp_guest_sampler *sampler,
		      void (*take)(void *context, union vp_any_record *record), void *context);
	/* Starts and stops reading the current tasks of the VM's vCPUs. */
	struct vp_error *(*identify)(struct vp_guest_sampler *sampler,
				     const struct vp_guest_state *state,
				     const struct vp_guest_finding *finding);
	void (*forget)(struct vp_guest_sampler *sampler, uint32_t pid);
	struct vp_guest_sampler_totals (*totals)(struct vp_guest_sampler *sampler);
	struct vp_guest_sampler_counts (*counts)(struct vp_guest_sampler *sampler, uint32_t pid);
	void (*free)(struct vp_guest_sampler *sampler);
};

#endif
