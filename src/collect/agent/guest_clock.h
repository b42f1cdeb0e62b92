/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Converts times of guests' counters to the host's CLOCK_MONOTONIC during a recording: with KVM's
 * offset and ratio for the vCPU, and with pairs of host clock readings. Pairs are read whenever
 * later times have to be converted, so that each time is between two pairs.
 */
#ifndef VP_COLLECT_AGENT_GUEST_CLOCK_H
#define VP_COLLECT_AGENT_GUEST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/agent/clock_line.h"
#include "schema/vm.h"

struct vp_guest_clock {
	struct vp_clock_line line; /* from the host's TSC to CLOCK_MONOTONIC */
	bool has_counter;          /* the host has a readable TSC */
	uint64_t future; /* times in the future, which were replaced by the present time */
	uint64_t past;   /* times before the first pair */
};

/* Reads the host's clocks. */
void vp_guest_clock_read(struct vp_guest_clock *clock);
/* The time at which the vCPU's counter had that value. */
uint64_t vp_guest_clock_at(struct vp_guest_clock *clock, const struct vp_vcpu *vcpu,
			   uint64_t guest_tsc);
void vp_guest_clock_deinit(struct vp_guest_clock *clock);

#endif
