/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: samples of all layers of the host. */
#ifndef VP_SESSION_INSTRUMENT_PROFILE_H
#define VP_SESSION_INSTRUMENT_PROFILE_H

#include "base/pcpus.h"
#include "collect/programs/trigger.h"

struct vp_profile_ids {
	uint32_t *at;
	size_t count;
	size_t room;
};

/* Filter: empty lists match everything. A sample must match one of the processes or threads. */
struct vp_profile_targets {
	struct vp_profile_ids pids, tids;
	struct vp_pcpus pcpus;
};

struct vp_instrument_profile_options {
	const struct vp_profile_targets *targets; /* NULL: all; must outlive the instrument */
	struct vp_trigger_options trigger;
	size_t buffer_pages;    /* per pCPU, a power of two */
	bool read_memory;       /* resolve guest samples from guest memory */
	bool with_chains;       /* stacks of all samples */
	bool by_frame_pointers; /* guest user space: without copies of stacks */
};

/* For vp_session_add(), which takes it over; `options` are copied. */
struct vp_instrument *vp_instrument_profile(const struct vp_instrument_profile_options *options);

#endif
