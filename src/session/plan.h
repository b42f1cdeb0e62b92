/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan of a recording: how its instruments are set up on a hypervisor, by what is wanted. */
#ifndef VP_SESSION_PLAN_H
#define VP_SESSION_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/programs/hypervisor.h"
#include "collect/programs/trigger.h"

/* As wanted by the user; 0 or NULL: the plan decides. */
struct vp_plan_request {
	uint64_t frequency, period; /* of samples: Hz, events */
	const char *trigger;        /* a perf event */
	size_t pages;               /* of buffers, per pCPU */
	bool at_interrupts;         /* guests are also sampled at interrupts */
	bool no_memory;             /* guest memory is not read */
	bool states, trace;         /* vCPU states, events */
};

struct vp_plan {
	struct vp_trigger_options trigger;
	/* This host's samples do not hit guests: these are sampled apart, each `guest_period_ns` of
	 * a vCPU's CPU time, with a look at the vCPUs each `guest_poll_ns`. */
	bool samples_guests_apart;
	uint64_t guest_period_ns, guest_poll_ns;
	bool samples_read_memory; /* the host's samples that hit guests are named by guest memory */
	bool states;              /* the account has vCPU states */
	size_t sample_pages;
	size_t interval_bytes, trace_bytes; /* of rings, per pCPU */
};

struct vp_plan vp_plan_make(const struct vp_plan_request *request,
			    const struct vp_hypervisor *hypervisor);

#endif
