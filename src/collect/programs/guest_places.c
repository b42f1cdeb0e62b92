/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/guest_places.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "base/vec.h"
#include "bpf/intervals_abi.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"

static uint64_t guest_places_key_of(uint32_t pid, uint32_t vcpu)
{
	return (uint64_t)pid << 32 | vcpu;
}

static struct vp_guest_places guest_places_get(int map, uint64_t key)
{
	struct vp_guest_places places;

	if (bpf_map_lookup_elem(map, &key, &places))
		places = (struct vp_guest_places){0};
	return places;
}

static struct vp_error *guest_places_put(int map, uint64_t key,
					 const struct vp_guest_places *places)
{
	if (!bpf_map_update_elem(map, &key, places, BPF_ANY))
		return NULL;
	return vp_error_errno(errno, "no table entry left for vCPU %u of process %u", (uint32_t)key,
			      (uint32_t)(key >> 32));
}

/* An event keeps its place once it has one: another counter's value would look like a jump. */
struct vp_error *vp_guest_places_of_kernel(int map, const struct vp_guest_state *state,
					   const struct vp_guest_finding *finding)
{
	vp_vec_each (&finding->cpus, cpu) {
		uint64_t key = guest_places_key_of(state->pid, cpu->vcpu);
		struct vp_guest_places places = guest_places_get(map, key);
		vp_vec_each (&finding->counts, place) {
			if (place->vcpu != cpu->vcpu || places.marked >> place->count & 1)
				continue;
			places.hva[place->count] = vp_guest_state_hva(state, place->gpa);
			places.narrow |= (uint64_t)place->narrow << place->count;
		}
		VP_TRY(guest_places_put(map, key, &places));
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

/* The guest says it: of vCPUs that its VM does not have, nothing may take the room of others. */
struct vp_error *vp_guest_places_of_agent(int map, const struct vp_guest_state *state,
					  const struct vp_agent_places *agent)
{
	uint64_t marker = vp_guest_state_hva(state, agent->marker_gpa);

	vp_vec_each (&agent->counts, place) {
		uint64_t key = guest_places_key_of(state->pid, place->vcpu);
		uint64_t hva = vp_guest_state_hva(state, place->gpa);
		struct vp_guest_places places = guest_places_get(map, key);
		if (!marker || !hva || places.hva[place->event] || !has_vcpu(state, place->vcpu))
			continue;
		places.hva[place->event] = hva;
		places.marked |= 1ULL << place->event;
		places.marker_hva = marker;
		places.marker = agent->marker;
		VP_TRY(guest_places_put(map, key, &places));
	}
	return NULL;
}

typedef VP_VEC(uint64_t) map_keys;

/* All of the process: what is put while the map is walked would be met again. */
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

static void drop(struct vp_guest_places *places, bool agents)
{
	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
		if ((places->marked >> i & 1) == agents)
			places->hva[i] = 0;
	if (agents)
		places->marked = 0;
	else
		places->narrow = 0;
}

/* vCPUs that are left without a place stay: they may get one again. */
void vp_guest_places_drop(int map, uint32_t pid, bool agents)
{
	map_keys keys = keys_of(map, pid);

	vp_vec_each (&keys, key) {
		struct vp_guest_places places = guest_places_get(map, *key);
		drop(&places, agents);
		/* It takes the place of one that is there: there is room. */
		vp_error_free(guest_places_put(map, *key, &places));
	}
	vp_vec_deinit(&keys);
}

uint32_t vp_guest_places_known(int map, uint32_t pid)
{
	map_keys keys = keys_of(map, pid);
	uint32_t known = keys.count ? (1U << VP_GUEST_COUNT) - 1 : 0;

	vp_vec_each (&keys, key) {
		const struct vp_guest_places places = guest_places_get(map, *key);
		for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
			if (!places.hva[i])
				known &= ~(1U << i);
	}
	vp_vec_deinit(&keys);
	return known;
}
