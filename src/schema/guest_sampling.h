/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How guests were sampled apart from their host, and the cost: numbers in a recording, a sentence
 * where it is read. */
#ifndef VP_SCHEMA_GUEST_SAMPLING_H
#define VP_SCHEMA_GUEST_SAMPLING_H

#include <stdint.h>

#include "base/macros.h"

/* The numbers are in recordings: new ones go to the end. */
enum vp_guest_sampling_method {
	VP_GUEST_SAMPLING_NONE,     /* not apart, or of a recording with a sentence (before 0.3) */
	VP_GUEST_SAMPLING_CONTEXTS, /* from the vCPU's context in Xen */
	VP_GUEST_SAMPLING_METHODS
};

/* In addition. */
enum vp_guest_sampling_exits {
	VP_GUEST_SAMPLING_NO_EXITS,
	VP_GUEST_SAMPLING_INTERRUPTS, /* at exits for interrupts */
	VP_GUEST_SAMPLING_COUNTERS    /* at interrupts of a hardware counter */
};

struct vp_guest_sampling {
	uint32_t method; /* enum vp_guest_sampling_method */
	uint32_t exits;  /* enum vp_guest_sampling_exits */
	uint64_t period_ns, duration_ns;
	uint64_t contexts;        /* samples by the method */
	uint64_t pause_ns;        /* of all vCPUs, for these */
	uint64_t max_pause_ns;    /* for one */
	uint64_t unsampled_ns;    /* CPU time without samples */
	uint64_t periods;         /* that all samples stand for … */
	uint64_t exit_periods;    /* … those at exits, … */
	uint64_t unknown_periods; /* … and those without a known process */
	uint64_t exit_samples;
	/* Counters: pCPUs with interrupts; those in this host's vCPUs and in the hypervisor. */
	uint64_t pcpus, own, hypervisor;
};

/* A new string; "": VP_GUEST_SAMPLING_NONE. */
char *vp_guest_sampling_text(const struct vp_guest_sampling *sampling) VP_MUST_CHECK;

#endif
