/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan of a recording: settings of its data sources on this hypervisor, from the user's
 * options. */
#ifndef VP_SESSION_PLAN_H
#define VP_SESSION_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/programs/hypervisor.h"
#include "collect/programs/trigger.h"

/* The user's options; 0 or NULL: chosen by the plan. */
struct vp_plan_request {
	uint64_t frequency, period; /* of samples: Hz, events */
	const char *trigger;        /* a perf event */
	size_t pages;               /* of buffers, per pCPU */
	bool at_interrupts;         /* guests are also sampled at interrupts */
	bool no_memory;             /* guest memory is not read */
	bool states, trace;         /* vCPU states, events */
	bool stagger;               /* samples are at this host's offset of the period */
};

struct vp_plan {
	struct vp_trigger_options trigger;
	/* The host's samples do not hit guests: guests are sampled separately, every
	 * `guest_period_ns` of a vCPU's CPU time, polling the vCPUs every `guest_poll_ns`. */
	bool samples_guests_apart;
	uint64_t guest_period_ns, guest_poll_ns;
	bool samples_read_memory; /* guest samples of the host are resolved from guest memory */
	bool states;              /* the accounting records vCPU states */
	size_t sample_pages;
	size_t interval_bytes, trace_bytes; /* ring buffer sizes per pCPU */
};

struct vp_plan vp_plan_make(const struct vp_plan_request *request,
			    const struct vp_hypervisor *hypervisor);

#endif
