/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instrument that samples guests where the profile's samples of this host do not hit them. */
#ifndef VP_SESSION_INSTRUMENT_GUEST_SAMPLES_H
#define VP_SESSION_INSTRUMENT_GUEST_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/programs/guest_sampler.h"

struct vp_instrument;

struct vp_instrument_guest_samples_options {
	uint64_t period_ns; /* of a vCPU's CPU time */
	uint64_t poll_ns;   /* how often vCPUs are looked at */
	bool read_memory;   /* name samples by guests' memory */
	/* Unless `none`: the account, which reports these exits, must be in the session after this
	 * instrument. */
	enum vp_guest_interrupts interrupts;
};

/* Whether guests of this host need it. */
bool vp_guest_samples_needed(void);
struct vp_instrument *
vp_instrument_guest_samples(const struct vp_instrument_guest_samples_options *options);

#endif
