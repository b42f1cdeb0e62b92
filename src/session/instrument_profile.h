/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instrument that samples every layer of the host. */
#ifndef VP_SESSION_INSTRUMENT_PROFILE_H
#define VP_SESSION_INSTRUMENT_PROFILE_H

#include "base/pcpus.h"
#include "collect/programs/trigger.h"

struct vp_profile_ids {
	uint32_t *at;
	size_t count;
	size_t room;
};

/* Only samples of these; each empty list stands for all. A sample must be of one of the processes
 * or threads. */
struct vp_profile_targets {
	struct vp_profile_ids pids, tids;
	struct vp_pcpus pcpus;
};

struct vp_instrument_profile_options {
	const struct vp_profile_targets *targets; /* NULL: all; it must live as long */
	struct vp_trigger_options trigger;
	size_t buffer_pages; /* per pCPU, a power of two */
	bool read_memory;    /* name guests' samples by their memory */
	bool with_chains;    /* call chains of all samples */
};

/* For vp_session_add(), which takes it over; `options` are copied. */
struct vp_instrument *vp_instrument_profile(const struct vp_instrument_profile_options *options);

#endif
