/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passes the addresses of guests' counters in their VMMs' memory to the interval programs, through
 * the map `guest_counters` (bpf/intervals_state.bpf.h), given by its descriptor. */
#ifndef VP_COLLECT_PROGRAMS_GUEST_COUNTERS_H
#define VP_COLLECT_PROGRAMS_GUEST_COUNTERS_H

#include "base/macros.h"
#include "collect/agent/counts_client.h"
#include "collect/guests/guest_reader.h"

/* Adds counters of the kernel, except events that the agent counts already. */
struct vp_error *vp_guest_counters_of_kernel(int map, const struct vp_guest_state *state,
					     const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Adds counters of the agent, except events for which kernel counters are known. */
struct vp_error *vp_guest_counters_of_agent(int map, const struct vp_guest_state *state,
					    const struct vp_agent_memory *agent) VP_MUST_CHECK;
/* Removes the counters of that process: the agent's, or all except the agent's. */
void vp_guest_counters_drop(int map, uint32_t pid, bool agents);
/* Bits of the events whose counters are known for all of its vCPUs that have any. */
uint32_t vp_guest_counters_known(int map, uint32_t pid);

#endif
