/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instrument that samples every layer of the host. */
#ifndef VP_SESSION_INSTRUMENT_PROFILE_H
#define VP_SESSION_INSTRUMENT_PROFILE_H

#include "collect/programs/trigger.h"

struct vp_instrument_profile_options {
	struct vp_trigger_options trigger;
	size_t buffer_pages; /* per pCPU, a power of two */
	bool read_memory;    /* name guests' samples by their memory */
	bool with_chains;    /* call chains of all samples */
};

/* For vp_session_add(), which takes it over; `options` are copied. */
struct vp_instrument *vp_instrument_profile(const struct vp_instrument_profile_options *options);

#endif
