/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Times of guests' counters as the host's CLOCK_MONOTONIC while a recording runs: by the offset and
 * the ratio that KVM has of the vCPU, and by pairs of the host's clocks that are read at least as
 * often as there are later times to convert, so that each time lies between two pairs.
 */
#ifndef VP_COLLECT_AGENT_GUEST_CLOCK_H
#define VP_COLLECT_AGENT_GUEST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/agent/clock_line.h"
#include "schema/vm.h"

struct vp_guest_clock {
	struct vp_clock_line line; /* from the host's counter to its CLOCK_MONOTONIC */
	bool has_counter;          /* the host has one that can be read */
	uint64_t future;           /* times that had not come yet; they became now */
	uint64_t past;             /* from before the first pair */
};

/* Reads the host's clocks. */
void vp_guest_clock_read(struct vp_guest_clock *clock);
/* When the vCPU's counter showed that. */
uint64_t vp_guest_clock_at(struct vp_guest_clock *clock, const struct vp_vcpu *vcpu,
			   uint64_t guest_tsc);
void vp_guest_clock_deinit(struct vp_guest_clock *clock);

#endif
