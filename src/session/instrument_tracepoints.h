/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: any tracepoints of the host kernel. */
#ifndef VP_SESSION_INSTRUMENT_TRACEPOINTS_H
#define VP_SESSION_INSTRUMENT_TRACEPOINTS_H

#include "collect/tracefs/tracepoints.h"

struct vp_instrument_tracepoints_options {
	const struct vp_tracepoint_spec *specs;
	size_t n_specs;
	size_t ring_bytes; /* per pCPU, a power of two */
};

struct vp_instrument *
vp_instrument_tracepoints(const struct vp_instrument_tracepoints_options *options);

#endif
