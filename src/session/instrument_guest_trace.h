/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instrument that records guests' events, which their agents send. */
#ifndef VP_SESSION_INSTRUMENT_GUEST_TRACE_H
#define VP_SESSION_INSTRUMENT_GUEST_TRACE_H

struct vp_instrument_guest_trace_options {
	unsigned sets; /* bits of enum vp_events_set */
	unsigned port; /* of the agents */
};

struct vp_instrument *
vp_instrument_guest_trace(const struct vp_instrument_guest_trace_options *options);

#endif
