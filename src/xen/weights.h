/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of a vCPU's CPU time each of its samples stands for, and whose those are that were made
 * at its exits for interrupts: Xen's trace has only their RIP. Nothing here asks Xen.
 */
#ifndef VP_XEN_WEIGHTS_H
#define VP_XEN_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "schema/records.h"

/*
 * How many periods of CPU time a sample stands for that is taken now: those that have passed since
 * the one before, rounded; *accounted is moved on by them. 0: it is not due yet.
 */
uint64_t vp_xen_periods_due(uint64_t cpu_time, uint64_t period, uint64_t *accounted);

/* An exit for an interrupt for which a sample was due. */
struct vp_xen_exit_sample {
	uint64_t time, ip, periods;
};

/* A vCPU's CPU time at some time. */
struct vp_xen_ran {
	uint64_t ns;        /* CPU time */
	uint64_t open_exit; /* when it left the guest, which it has not entered since; 0: it has */
};

/* A vCPU's samples of both kinds; all zeros at first. */
struct vp_xen_weights {
	uint64_t ran;                            /* the latest reported CPU time, ns */
	uint64_t accounted;                      /* CPU time up to which samples stand for it */
	VP_VEC(struct vp_xen_exit_sample) exits; /* since the context before */
	bool has_context;
	struct vp_guest_sample context; /* the one before */
};

/* Takes a sample that stands for that many periods; 0: it is left out. */
struct vp_xen_weighed {
	void (*take)(void *context, const struct vp_guest_sample *sample, uint64_t periods);
	void *context;
};

void vp_xen_weights_deinit(struct vp_xen_weights *weights);
/* The vCPU, which had had the pCPU for `ran` ns, left it at that place for an interrupt. In order
 * of time with what follows. */
void vp_xen_weights_exit(struct vp_xen_weights *weights, uint64_t period, uint64_t time,
			 uint64_t ran, uint64_t ip);
/*
 * Its context was read. The exits since the one before are samples now: if both are of the same
 * process, of that one, else of an unknown one. Then comes the context's own sample, which takes
 * the place of an exit right before it: the vCPU has not gone on since.
 */
void vp_xen_weights_context(struct vp_xen_weights *weights, uint64_t period, struct vp_xen_ran ran,
			    const struct vp_guest_sample *sample, struct vp_xen_weighed out);
/* No context will come soon, or none at all: the exits are of an unknown process, of the vCPU that
 * `who` has. */
void vp_xen_weights_flush(struct vp_xen_weights *weights, const struct vp_guest_sample *who,
			  struct vp_xen_weighed out);

#endif
