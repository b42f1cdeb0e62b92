/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells the interval programs where guests' counters are in their VMMs' memory, through the map
 * `guest_counters` (bpf/intervals_state.bpf.h), by its descriptor.
 */
#ifndef VP_COLLECT_PROGRAMS_GUEST_COUNTERS_H
#define VP_COLLECT_PROGRAMS_GUEST_COUNTERS_H

#include "base/macros.h"
#include "collect/agent/counts_client.h"
#include "collect/guests/guest_reader.h"

/* The kernel's own counters, but for events that the agent counts already. */
struct vp_error *vp_guest_counters_of_kernel(int map, const struct vp_guest_state *state,
					     const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* The agent's, but for events that the kernel's own counters are known of. */
struct vp_error *vp_guest_counters_of_agent(int map, const struct vp_guest_state *state,
					    const struct vp_agent_memory *agent) VP_MUST_CHECK;
/* Forgets the agent's counters of that process, or all but these. */
void vp_guest_counters_drop(int map, uint32_t pid, bool agents);
/* Bits of the events that are known of all its vCPUs of which any is. */
uint32_t vp_guest_counters_known(int map, uint32_t pid);

#endif
