/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: guest events, sent by agents. */
#ifndef VP_SESSION_INSTRUMENT_GUEST_TRACE_H
#define VP_SESSION_INSTRUMENT_GUEST_TRACE_H

struct vp_instrument_guest_trace_options {
	unsigned sets; /* bits of enum vp_events_set */
	unsigned port; /* vsock port of the agents */
};

struct vp_instrument *
vp_instrument_guest_trace(const struct vp_instrument_guest_trace_options *options);

#endif
