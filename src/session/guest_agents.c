/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/guest_agents.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"
#include "collect/agent/agent_client.h"
#include "collect/agent/counts_client.h"
#include "collect/guests/guest_state.h"
#include "protocol/counts_protocol.h"
#include "schema/agent_outcome.h"
#include "schema/interval.h"

struct agent {
	uint32_t id; /* recording number of its VM */
	uint32_t pid;
	char *vm;                       /* name of the VM */
	uint32_t wanted;                /* bits of enum vp_guest_count … */
	uint32_t asked_for;             /* … as first requested */
	struct vp_agent_counts *counts; /* NULL: not connected */
	enum vp_agent_counts_state state;
	char *problem; /* reason of a failure */
	uint64_t next; /* time of the next attempt, if not connected */
	unsigned failures;
	uint64_t gone_at; /* time since which counts are missing; 0: they are not */
	uint64_t missing; /* earlier missing time, total ns */
};

/* Delay of reconnecting to an agent, seconds: initial value, and maximum. */
enum { AGAIN_S = 3, LONGEST_AGAIN_S = 60 };
#define SECOND 1000000000ULL

struct vp_guest_agents {
	struct vp_intervals *intervals;
	unsigned port;
	vp_notices *notices;
	struct vp_guest_lister *lister; /* NULL: not needed yet */
	VP_VEC(struct agent) agents;
};

#define NOTICE(agents, ...) vp_vec_push((agents)->notices, vp_format(__VA_ARGS__))

struct vp_guest_agents *vp_guest_agents_new(struct vp_intervals *intervals, unsigned port,
					    vp_notices *notices)
{
	struct vp_guest_agents *agents = vp_alloc(sizeof(*agents));

	*agents =
	    (struct vp_guest_agents){.intervals = intervals, .port = port, .notices = notices};
	return agents;
}

static void agent_deinit(struct agent *agent)
{
	vp_agent_counts_free(agent->counts);
	free(agent->vm);
	free(agent->problem);
}

void vp_guest_agents_free(struct vp_guest_agents *agents)
{
	if (!agents)
		return;
	vp_vec_each (&agents->agents, agent)
		agent_deinit(agent);
	vp_vec_deinit(&agents->agents);
	vp_guest_lister_free(agents->lister);
	free(agents);
}

static struct agent *agent_of(const struct vp_guest_agents *agents, uint32_t id)
{
	vp_vec_each (&agents->agents, agent)
		if (agent->id == id)
			return agent;
	return NULL;
}

/* "guest:forks, guest:system-calls"; a new string. */
static char *name_events(uint32_t events)
{
	struct vp_buffer names = {0};

	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
		if (events >> i & 1)
			vp_buffer_printf(&names, "%s%s", names.size ? ", " : "",
					 vp_counts_event_name((enum vp_guest_count)i));
	char *copy = vp_strdup(vp_buffer_text(&names));
	vp_buffer_deinit(&names);
	return copy;
}

static bool is_one(uint32_t events)
{
	return !(events & (events - 1));
}

/* Notes the requested events as missing from now on. */
static void miss(struct vp_guest_agents *agents, struct agent *agent, const char *why)
{
	VP_AUTO_FREE char *names = name_events(agent->wanted);

	if (!agent->problem)
		NOTICE(agents, "VM '%s': %s need%s vperf-agent in the guest: %s", agent->vm, names,
		       is_one(agent->wanted) ? "s" : "", why);
	free(agent->problem);
	agent->problem = vp_strdup(why);
}

static void guest_agents_pause_asking(struct agent *agent)
{
	uint64_t pause = AGAIN_S * SECOND, longest = LONGEST_AGAIN_S * SECOND;

	for (unsigned i = 0; i < agent->failures && pause < longest; i++)
		pause *= 2;
	agent->failures++;
	agent->next = vp_clock_monotonic() + (pause < longest ? pause : longest);
}

static void guest_agents_end(struct vp_guest_agents *agents, struct agent *agent)
{
	VP_AUTO_FREE char *names = name_events(agent->wanted);
	const char *why = vp_agent_counts_problem(agent->counts);

	if (agent->state == VP_AGENT_COUNTING) {
		vp_intervals_forget_agent(agents->intervals, agent->pid);
		if (agent->wanted && !agent->gone_at)
			NOTICE(agents,
			       "VM '%s': %s %s missing from now on: %s; contacting its agent again "
			       "every %d to %d s",
			       agent->vm, names, is_one(agent->wanted) ? "is" : "are", why, AGAIN_S,
			       LONGEST_AGAIN_S);
		agent->gone_at = agent->gone_at ? agent->gone_at : vp_clock_monotonic();
		free(agent->problem);
		agent->problem = vp_strdup(why);
	} else {
		miss(agents, agent, why);
	}
	vp_agent_counts_free(agent->counts);
	agent->counts = NULL;
	agent->state = VP_AGENT_GONE;
	guest_agents_pause_asking(agent);
}

static void guest_agents_say_back(struct vp_guest_agents *agents, struct agent *agent)
{
	VP_AUTO_FREE char *names = name_events(agent->wanted);
	uint64_t passed = vp_clock_monotonic() - agent->gone_at;

	agent->missing += passed;
	agent->gone_at = 0;
	NOTICE(agents, "VM '%s': %s %s counted again after %.1f s", agent->vm, names,
	       is_one(agent->wanted) ? "is" : "are", (double)passed / SECOND);
}

static struct vp_error *read_state(struct vp_guest_agents *agents, uint32_t pid,
				   vp_guest_states *states)
{
	if (!agents->lister)
		VP_TRY(vp_guest_lister_new(&agents->lister));
	return vp_guest_lister_read_one(agents->lister, pid, states);
}

/* Its addresses are valid only within the VM's memory slots. */
static void take_memory(struct vp_guest_agents *agents, struct agent *agent)
{
	const struct vp_agent_memory *memory = vp_agent_counts_memory(agent->counts);
	vp_guest_states states = {0};
	struct vp_error *error = read_state(agents, agent->pid, &states);

	if (!error)
		error = vp_guest_state_expect_open(&states.at[0]);
	if (!error)
		error = vp_intervals_take_agent(agents->intervals, &states.at[0], memory);
	vp_guest_states_deinit(&states);
	uint32_t left = error ? agent->wanted
			      : agent->wanted & vp_intervals_unknown(agents->intervals, agent->pid);
	VP_AUTO_FREE char *names = name_events(left);
	free(agent->problem);
	agent->problem = error  ? vp_strdup(vp_error_message(error))
			 : left ? vp_format("it does not count %s", names)
				: NULL;
	if (left)
		NOTICE(agents, "VM '%s': the agent does not provide %s%s%s", agent->vm, names,
		       error ? ": " : "", error ? vp_error_message(error) : "");
	vp_error_free(error);
	agent->wanted &= ~left;
	agent->state = VP_AGENT_COUNTING;
	agent->failures = 0;
	if (agent->gone_at && agent->wanted)
		guest_agents_say_back(agents, agent);
}

static void guest_agents_poll(struct vp_guest_agents *agents, struct agent *agent, int timeout_ms)
{
	if (!agent->counts)
		return;
	enum vp_agent_counts_state now = vp_agent_counts_poll(agent->counts, timeout_ms);
	if (now == VP_AGENT_COUNTING && agent->state != VP_AGENT_COUNTING)
		take_memory(agents, agent);
	else if (now == VP_AGENT_ABSENT)
		miss(agents, agent, vp_agent_counts_problem(agent->counts));
	else if (now == VP_AGENT_GONE)
		guest_agents_end(agents, agent);
	if (agent->counts)
		agent->state = now;
}

bool vp_guest_agents_asked(const struct vp_guest_agents *agents, const struct vp_vm *vm)
{
	return agent_of(agents, vp_vm_id(vm)) != NULL;
}

static void guest_agents_start(struct vp_guest_agents *agents, struct agent *agent,
			       const struct vp_vm *vm)
{
	const struct vp_agent_address address = vp_agent_address_of(vm, agents->port);
	struct vp_error *error =
	    vp_agent_is_addressed(&address)
		? vp_agent_counts_start(&address, agent->wanted, &agent->counts)
		: vp_error_new("the VM has no vsock device");

	agent->state = VP_AGENT_ASKED;
	if (error) {
		miss(agents, agent, vp_error_message(error));
		guest_agents_pause_asking(agent);
	}
	vp_error_free(error);
}

void vp_guest_agents_again(struct vp_guest_agents *agents, const struct vp_vm *vm)
{
	struct agent *agent = agent_of(agents, vp_vm_id(vm));

	if (agent && agent->counts && vm->end && agent->state != VP_AGENT_COUNTING) {
		vp_agent_counts_free(agent->counts); /* there will be no reply */
		agent->counts = NULL;
	}
	if (!agent || agent->counts || !agent->asked_for || vm->end ||
	    vp_clock_monotonic() < agent->next)
		return;
	agent->wanted = agent->asked_for;
	guest_agents_start(agents, agent, vm);
}

void vp_guest_agents_forget(struct vp_guest_agents *agents, uint32_t id)
{
	struct agent *agent = agent_of(agents, id);

	if (!agent)
		return;
	agent_deinit(agent);
	*agent = agents->agents.at[--agents->agents.count];
}

void vp_guest_agents_ask(struct vp_guest_agents *agents, const struct vp_vm *vm)
{
	uint32_t wanted = vp_intervals_unknown(agents->intervals, vm->pid);

	if (vp_guest_agents_asked(agents, vm))
		return;
	struct agent *agent = vp_vec_push_slot(&agents->agents);
	*agent = (struct agent){.id = vp_vm_id(vm),
				.pid = vm->pid,
				.vm = vp_strdup(vm->name),
				.wanted = wanted,
				.asked_for = wanted};
	if (wanted)
		guest_agents_start(agents, agent, vm);
}

void vp_guest_agents_settle(struct vp_guest_agents *agents, unsigned timeout_ms)
{
	uint64_t deadline = vp_clock_monotonic() + timeout_ms * 1000000ULL;

	vp_vec_each (&agents->agents, agent)
		while (agent->counts && agent->state == VP_AGENT_ASKED &&
		       vp_clock_monotonic() < deadline)
			guest_agents_poll(agents, agent, 20);
}

void vp_guest_agents_step(struct vp_guest_agents *agents)
{
	vp_vec_each (&agents->agents, agent)
		guest_agents_poll(agents, agent, 0);
}

bool vp_guest_agents_outcome(const struct vp_guest_agents *agents, const struct vp_vm *vm,
			     struct vp_agent_outcome *ret)
{
	const struct agent *agent = agent_of(agents, vp_vm_id(vm));

	if (!agent || (!agent->wanted && !agent->problem))
		return false;
	bool has_counted = agent->state == VP_AGENT_COUNTING || agent->gone_at;
	*ret =
	    (struct vp_agent_outcome){.request = VP_AGENT_COUNTS,
				      .status = VP_AGENT_FAILED,
				      .port = vp_agent_port_used(agents->port),
				      .problem = agent->problem ? vp_strdup(agent->problem) : NULL};
	if (!has_counted || !agent->wanted)
		return true;
	ret->status = VP_AGENT_SERVED;
	ret->counted = agent->wanted;
	ret->missing_ns =
	    agent->missing + (agent->gone_at ? vp_clock_monotonic() - agent->gone_at : 0);
	return true;
}
