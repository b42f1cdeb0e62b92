/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/guest_counters.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "base/vec.h"
#include "bpf/intervals_abi.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"

static uint64_t guest_counters_key_of(uint32_t pid, uint32_t vcpu)
{
	return (uint64_t)pid << 32 | vcpu;
}

static struct vp_guest_counters guest_counters_get(int map, uint64_t key)
{
	struct vp_guest_counters counters;

	if (bpf_map_lookup_elem(map, &key, &counters))
		counters = (struct vp_guest_counters){0};
	return counters;
}

static struct vp_error *guest_counters_put(int map, uint64_t key,
					   const struct vp_guest_counters *counters)
{
	if (!bpf_map_update_elem(map, &key, counters, BPF_ANY))
		return NULL;
	return vp_error_errno(errno, "no table entry left for vCPU %u of process %u", (uint32_t)key,
			      (uint32_t)(key >> 32));
}

/* Once an event has a source it keeps it: another counter's value would look like a jump. */
struct vp_error *vp_guest_counters_of_kernel(int map, const struct vp_guest_state *state,
					     const struct vp_guest_finding *finding)
{
	vp_vec_each (&finding->cpus, cpu) {
		uint64_t key = guest_counters_key_of(state->pid, cpu->vcpu);
		struct vp_guest_counters counters = guest_counters_get(map, key);
		vp_vec_each (&finding->counts, address) {
			if (address->vcpu != cpu->vcpu || counters.marked >> address->count & 1)
				continue;
			counters.hva[address->count] = vp_guest_state_hva(state, address->gpa);
			counters.narrow |= (uint64_t)address->narrow << address->count;
		}
		VP_TRY(guest_counters_put(map, key, &counters));
	}
	return NULL;
}

static bool has_vcpu(const struct vp_guest_state *state, uint32_t number)
{
	vp_vec_each (&state->vcpus, vcpu)
		if (vcpu->vcpu == number)
			return true;
	return false;
}

/* The vCPU number comes from the guest: vCPUs that the VM does not have must not use up table
 * entries. */
struct vp_error *vp_guest_counters_of_agent(int map, const struct vp_guest_state *state,
					    const struct vp_agent_memory *agent)
{
	uint64_t marker = vp_guest_state_hva(state, agent->marker_gpa);

	vp_vec_each (&agent->counts, address) {
		uint64_t key = guest_counters_key_of(state->pid, address->vcpu);
		uint64_t hva = vp_guest_state_hva(state, address->gpa);
		struct vp_guest_counters counters = guest_counters_get(map, key);
		if (!marker || !hva || counters.hva[address->event] ||
		    !has_vcpu(state, address->vcpu))
			continue;
		counters.hva[address->event] = hva;
		counters.marked |= 1ULL << address->event;
		counters.marker_hva = marker;
		counters.marker = agent->marker;
		VP_TRY(guest_counters_put(map, key, &counters));
	}
	return NULL;
}

typedef VP_VEC(uint64_t) map_keys;

/* All entries of the process. Collected first, because entries added during iteration would be
 * visited, too. */
static map_keys keys_of(int map, uint32_t pid)
{
	map_keys keys = {0};
	uint64_t key, *before = NULL;

	while (!bpf_map_get_next_key(map, before, &key)) {
		if (key >> 32 == pid)
			vp_vec_push(&keys, key);
		before = &key;
	}
	return keys;
}

static void drop(struct vp_guest_counters *counters, bool agents)
{
	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
		if ((counters->marked >> i & 1) == agents)
			counters->hva[i] = 0;
	if (agents)
		counters->marked = 0;
	else
		counters->narrow = 0;
}

/* Entries of vCPUs without any counter stay: they may get one again. */
void vp_guest_counters_drop(int map, uint32_t pid, bool agents)
{
	map_keys keys = keys_of(map, pid);

	vp_vec_each (&keys, key) {
		struct vp_guest_counters counters = guest_counters_get(map, *key);
		drop(&counters, agents);
		/* It replaces an existing entry, so the map cannot be full. */
		vp_error_free(guest_counters_put(map, *key, &counters));
	}
	vp_vec_deinit(&keys);
}

uint32_t vp_guest_counters_known(int map, uint32_t pid)
{
	map_keys keys = keys_of(map, pid);
	uint32_t known = keys.count ? (1U << VP_GUEST_COUNT) - 1 : 0;

	vp_vec_each (&keys, key) {
		const struct vp_guest_counters counters = guest_counters_get(map, *key);
		for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
			if (!counters.hva[i])
				known &= ~(1U << i);
	}
	vp_vec_deinit(&keys);
	return known;
}
