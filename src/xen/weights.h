/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Weights of a vCPU's samples by CPU time, and processes for samples at VM exits for interrupts, of
 * which Xen's trace has only the RIP. Nothing here calls Xen. */
#ifndef VP_XEN_WEIGHTS_H
#define VP_XEN_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "schema/records.h"

/* Number of periods that a sample taken now represents: CPU time since *accounted, rounded to
 * periods, which is added to *accounted. 0: not due yet. */
uint64_t vp_xen_periods_due(uint64_t cpu_time, uint64_t period, uint64_t *accounted);

/* A VM exit for an interrupt at which a sample was due. */
struct vp_xen_exit_sample {
	uint64_t time, ip, periods;
};

/* A vCPU's CPU time at a time. */
struct vp_xen_ran {
	uint64_t ns;        /* CPU time */
	uint64_t open_exit; /* time of a VM exit not followed by an entry so far; 0: none */
};

/* A vCPU's samples of both kinds; zero-initialized. */
struct vp_xen_weights {
	uint64_t ran;                            /* latest reported CPU time, ns */
	uint64_t accounted;                      /* CPU time represented by samples so far */
	VP_VEC(struct vp_xen_exit_sample) exits; /* since the previous context */
	bool has_context;
	struct vp_guest_sample context; /* the previous context */
};

/* Receives a sample that represents that many periods; 0: skipped. */
struct vp_xen_weighed {
	void (*take)(void *context, const struct vp_guest_sample *sample, uint64_t periods);
	void *context;
};

void vp_xen_weights_deinit(struct vp_xen_weights *weights);
/* Notes a VM exit for an interrupt at that RIP, after `ran` ns of run time. Calls must be in order
 * of time, also with the next function. */
void vp_xen_weights_exit(struct vp_xen_weights *weights, uint64_t period, uint64_t time,
			 uint64_t ran, uint64_t ip);
/*
 * Notes a context read. The exits since the previous context become samples: of its process if both
 * contexts have the same process, otherwise of an unknown one. Then the context itself becomes a
 * sample, replacing an exit immediately before it, because the vCPU has not run since.
 */
void vp_xen_weights_context(struct vp_xen_weights *weights, uint64_t period, struct vp_xen_ran ran,
			    const struct vp_guest_sample *sample, struct vp_xen_weighed out);
/* No context will follow soon, or ever: the exits become samples of an unknown process, on the vCPU
 * in `who`. */
void vp_xen_weights_flush(struct vp_xen_weights *weights, const struct vp_guest_sample *who,
			  struct vp_xen_weighed out);

#endif
