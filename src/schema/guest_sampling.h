/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Method and cost of sampling guests separately from the host: stored as numbers, rendered as a
 * sentence. */
#ifndef VP_SCHEMA_GUEST_SAMPLING_H
#define VP_SCHEMA_GUEST_SAMPLING_H

#include <stdint.h>

#include "base/macros.h"

/* The numbers are in recordings: append only. */
enum vp_guest_sampling_method {
	VP_GUEST_SAMPLING_NONE, /* not separate, or a recording before 0.3, which has a sentence */
	VP_GUEST_SAMPLING_CONTEXTS, /* from the vCPU's context in Xen */
	VP_GUEST_SAMPLING_METHODS
};

/* Additional samples. */
enum vp_guest_sampling_exits {
	VP_GUEST_SAMPLING_NO_EXITS,
	VP_GUEST_SAMPLING_INTERRUPTS, /* at VM exits for interrupts */
	VP_GUEST_SAMPLING_COUNTERS    /* at interrupts of a hardware counter */
};

struct vp_guest_sampling {
	uint32_t method; /* enum vp_guest_sampling_method */
	uint32_t exits;  /* enum vp_guest_sampling_exits */
	uint64_t period_ns, duration_ns;
	uint64_t contexts;        /* samples by the method */
	uint64_t pause_ns;        /* total pause of all vCPUs for these samples, ns */
	uint64_t max_pause_ns;    /* longest pause for one sample, ns */
	uint64_t unsampled_ns;    /* CPU time without samples */
	uint64_t periods;         /* CPU time that all samples represent, ns … */
	uint64_t exit_periods;    /* … those at exits, … */
	uint64_t unknown_periods; /* … and those of unknown processes */
	uint64_t exit_samples;
	/* With counters: pCPUs with counter interrupts; interrupts in this host's vCPUs, and in the
	 * hypervisor. */
	uint64_t pcpus, own, hypervisor;
};

/* The sentence, a new string; "" for VP_GUEST_SAMPLING_NONE. */
char *vp_guest_sampling_text(const struct vp_guest_sampling *sampling) VP_MUST_CHECK;

#endif
