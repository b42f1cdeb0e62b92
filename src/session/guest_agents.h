/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests guest kernel events that are not in guest memory from agents, for intervals. No function
 * waits for an agent while intervals are counted. */
#ifndef VP_SESSION_GUEST_AGENTS_H
#define VP_SESSION_GUEST_AGENTS_H

#include "base/macros.h"
#include "base/notices.h"
#include "collect/programs/intervals_source.h"
#include "schema/vm.h"

struct vp_guest_agents;

/* Both must outlive it. `port`: vsock port of the agents, 0: the default. */
struct vp_guest_agents *vp_guest_agents_new(struct vp_intervals *intervals, unsigned port,
					    vp_notices *notices);
void vp_guest_agents_free(struct vp_guest_agents *agents);
/* Requests events without another source from the VM's agent, at the first call only. */
void vp_guest_agents_ask(struct vp_guest_agents *agents, const struct vp_vm *vm);
/* Reconnects to an agent that is gone, at growing intervals: its guest may have rebooted. */
void vp_guest_agents_again(struct vp_guest_agents *agents, const struct vp_vm *vm);
/* Called when no record in memory refers to the VM any more. */
void vp_guest_agents_forget(struct vp_guest_agents *agents, uint32_t id);
/* Whether a request was sent to the VM's agent. */
bool vp_guest_agents_asked(const struct vp_guest_agents *agents, const struct vp_vm *vm);
/* Waits until all agents have replied or are known to be absent, at most `timeout_ms`. */
void vp_guest_agents_settle(struct vp_guest_agents *agents, unsigned timeout_ms);
/* Processes received replies. */
void vp_guest_agents_step(struct vp_guest_agents *agents);
/* The outcome, to be deinitialized; false: not requested. */
bool vp_guest_agents_outcome(const struct vp_guest_agents *agents, const struct vp_vm *vm,
			     struct vp_agent_outcome *ret) VP_MUST_CHECK;

#endif
