/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: samples of guests, on hosts whose own samples do not hit them. */
#ifndef VP_SESSION_INSTRUMENT_GUEST_SAMPLES_H
#define VP_SESSION_INSTRUMENT_GUEST_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/programs/guest_sampler.h"

struct vp_instrument;

struct vp_instrument_guest_samples_options {
	uint64_t period_ns; /* of a vCPU's CPU time */
	uint64_t poll_ns;   /* interval at which vCPUs are polled */
	bool read_memory;   /* resolve samples from guest memory */
	/* Unless `none`: the session must have accounting, which reports these exits, added after
	 * this instrument. */
	enum vp_guest_interrupts interrupts;
};

/* Whether guests of this host need it. */
bool vp_guest_samples_needed(void);
struct vp_instrument *
vp_instrument_guest_samples(const struct vp_instrument_guest_samples_options *options);

#endif
