/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/segment.h"

#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "store/recording.h"
#include "timeline/chain.h"
#include "timeline/guests.h"
#include "timeline/survey.h"

enum {
	MAX_PROBES = 64, /* of all streams together */
	MIN_PROBES = 4,  /* minimum per stream */
};
/* Cost of surveying a record, relative to counting it. */
#define SURVEY_COST 0.1

/* Approximate amount of records of a stream up to that time. */
struct probe {
	uint64_t time, bytes;
};
typedef VP_VEC(struct probe) probes;

static int segment_by_time(const void *left, const void *right)
{
	const struct probe *a = left, *b = right;

	return (a->time > b->time) - (a->time < b->time);
}

static void probe_stream(const struct vp_stream_reader *stream, size_t count, probes *ret)
{
	uint64_t size = vp_stream_size(stream), time;

	for (size_t i = 0; i < count; i++)
		if (vp_stream_time_near(
			stream, (uint64_t)((double)size * (double)i / (double)count), &time))
			vp_vec_push(ret, ((struct probe){time, size / count}));
}

bool vp_segments_cut(const vp_stream_readers *streams, size_t count, uint64_t *cuts)
{
	size_t each = streams->count ? MAX_PROBES / streams->count : 0, cut = 0;
	double weight = 1, weights = 0, sum = 0, all = 0, before;
	probes found = {0};

	for (size_t i = 0; i < streams->count; i++)
		probe_stream(streams->at[i], each < MIN_PROBES ? MIN_PROBES : each, &found);
	for (size_t i = 0; i < count; i++, weight *= 1 - SURVEY_COST)
		weights += weight;
	if (found.count)
		qsort(found.at, found.count, sizeof(*found.at), segment_by_time);
	vp_vec_each (&found, probe)
		all += (double)probe->bytes;
	weight = before = 1;
	vp_vec_each (&found, probe) {
		while (cut + 1 < count && sum >= all * before / weights) {
			cuts[cut++] = probe->time;
			weight *= 1 - SURVEY_COST;
			before += weight;
		}
		sum += (double)probe->bytes;
	}
	vp_vec_deinit(&found);
	return cut + 1 == count && (!cut || cuts[0]);
}

static int by_birth(const void *left, const void *right)
{
	const struct vp_survey_thread *const *a = left, *const *b = right;

	return vp_survey_is_before(&(*b)->birth, &(*a)->birth) -
	       vp_survey_is_before(&(*a)->birth, &(*b)->birth);
}

/* Adds the vCPUs in the order of their first records. */
static void add_vcpus(struct vp_guests *guests, const struct vp_survey *survey)
{
	VP_VEC(const struct vp_survey_thread *) born = {0};

	vp_vec_each (&survey->threads, thread)
		if (thread->is_vcpu)
			vp_vec_push(&born, thread);
	if (born.count)
		qsort(born.at, born.count, sizeof(*born.at), by_birth);
	vp_vec_each (&born, at) {
		const struct vp_survey_thread *thread = *at;
		if (thread->by_switch ||
		    vp_guests_vcpu(guests, thread->owner, thread->tid) == VP_NONE)
			vp_guests_vcpu_add(guests, thread->owner, thread->tid, thread->vcpu);
	}
	vp_vec_deinit(&born);
}

/* Per vCPU: the thread with its last record, and the thread with its last known exit. */
struct latest_threads {
	const struct vp_survey_thread *latest, *exited;
};

static void stretch_set_vcpus(struct vp_guests *guests, const struct vp_survey *survey)
{
	struct latest_threads *vcpus = vp_alloc((guests->vcpus.count + 1) * sizeof(*vcpus));

	vp_vec_each (&survey->threads, thread) {
		uint32_t number = vp_guests_vcpu(guests, thread->owner, thread->tid);
		struct latest_threads *vcpu = number == VP_NONE ? NULL : &vcpus[number];
		if (vcpu &&
		    (!vcpu->latest || vp_survey_is_before(&vcpu->latest->last, &thread->last)))
			vcpu->latest = thread;
		if (vcpu && thread->exit.known &&
		    (!vcpu->exited ||
		     vp_survey_is_before(&vcpu->exited->exit.at, &thread->exit.at)))
			vcpu->exited = thread;
	}
	for (uint32_t i = 0; i < guests->vcpus.count; i++) {
		const struct vp_survey_thread *latest = vcpus[i].latest, *exited = vcpus[i].exited;
		if (!latest)
			continue;
		vp_guests_move(guests, i, latest->last.stream);
		guests->vcpus.at[i].blocked = latest->blocked;
		if (exited)
			guests->vcpus.at[i].exit =
			    (struct vp_exit){exited->exit.vendor, exited->exit.reason, true};
	}
	free(vcpus);
}

/* Sets the ticks as fill_gap() in timeline.c leaves them at the last record. */
static void stretch_set_ticks(struct vp_timeline *timeline, struct vp_survey *survey)
{
	uint64_t period = timeline->fill_period, now = survey->last;

	for (size_t i = 0; i < timeline->pcpus.count; i++) {
		struct vp_pcpu *pcpu = &timeline->pcpus.at[i];
		if (survey->pcpus.at[i].ticked)
			pcpu->last_tick = survey->pcpus.at[i].last_tick;
		pcpu->events = survey->pcpus.at[i].events;
		pcpu->chain = survey->pcpus.at[i].chain;
		survey->pcpus.at[i].chain = NULL;
		if (period && !pcpu->of_vcpus && now > pcpu->last_tick &&
		    now - pcpu->last_tick > period + period / 2)
			pcpu->last_tick +=
			    (now - pcpu->last_tick - period / 2 - 1) / period * period;
	}
}

void vp_segment_init(struct vp_timeline *timeline, const struct vp_recording *recording,
		     vp_vms *vms, const vp_stream_readers *streams,
		     const struct vp_segment *segment)
{
	struct vp_survey survey;

	if (!segment->from) {
		vp_timeline_init(timeline, recording, vms, streams, NULL);
		timeline->until = segment->until;
		return;
	}
	vp_survey_make(streams, &segment->needs, segment->from, &survey);
	vp_timeline_init(timeline, recording, vms, streams, survey.heads);
	timeline->until = segment->until;
	timeline->first = survey.first;
	timeline->last = survey.last;
	add_vcpus(&timeline->guests, &survey);
	stretch_set_vcpus(&timeline->guests, &survey);
	vp_vec_each (&survey.names, name)
		vp_timeline_name(timeline, (uint32_t)name->key, name->comm);
	vp_vec_each (&survey.guest_names, name)
		vp_timeline_name_guest(timeline, (uint32_t)(name->key >> 32), (uint32_t)name->key,
				       name->comm);
	stretch_set_ticks(timeline, &survey);
	vp_survey_deinit(&survey);
}

/* Digest of a map: independent of the order of its slots. */
static uint64_t digest_map(const struct vp_map *map, const struct vp_intern *texts)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; map->slots && i <= map->mask; i++) {
		const struct vp_map_slot *slot = &map->slots[i];
		if (!slot->used)
			continue;
		const char *text = texts ? vp_intern_text(texts, slot->value) : "";
		sum += XXH3_64bits_withSeed(text, strlen(text),
					    vp_hash64(slot->key) + (texts ? 0 : slot->value));
	}
	return sum;
}

static void digest_walk(XXH3_state_t *state, const struct vp_chain_walk *walk)
{
	XXH3_64bits_update(state, &walk->count, sizeof(walk->count));
	XXH3_64bits_update(state, walk->ips, walk->count * sizeof(*walk->ips));
	if (walk->count)
		XXH3_64bits_update(state, &walk->end, sizeof(walk->end));
}

static void digest_pcpu(XXH3_state_t *state, const struct vp_pcpu *pcpu, bool fills, bool chains)
{
	const struct vp_chain *chain = pcpu->chain;

	if (fills)
		XXH3_64bits_update(state, &pcpu->last_tick, sizeof(pcpu->last_tick));
	if (pcpu->events)
		XXH3_64bits_update(state, &pcpu->events, sizeof(pcpu->events));
	if (!chains || !chain || chain->used)
		return;
	XXH3_64bits_update(state, &chain->tid, sizeof(chain->tid));
	if (chain->has_regs)
		XXH3_64bits_update(state, &chain->regs, sizeof(chain->regs));
	digest_walk(state, &chain->guest_user);
	digest_walk(state, &chain->guest_kernel);
	digest_walk(state, &chain->host_kernel);
	digest_walk(state, &chain->host_user);
	XXH3_64bits_update(state, chain->stack, chain->n_stack * sizeof(*chain->stack));
}

static void digest_vcpu(XXH3_state_t *state, const struct vp_vcpu_state *vcpu, bool with_home)
{
	const uint32_t all[] = {vcpu->vm,
				vcpu->number,
				vcpu->tid,
				vcpu->home,
				vcpu->exit.known,
				vcpu->exit.known ? vcpu->exit.vendor : 0,
				vcpu->exit.known ? vcpu->exit.reason : 0,
				vcpu->blocked};

	XXH3_64bits_update(state, all, with_home ? sizeof(all) : 3 * sizeof(*all));
}

uint64_t vp_segment_digest(const struct vp_timeline *timeline)
{
	const struct vp_guests *guests = &timeline->guests;
	const uint64_t sums[] = {digest_map(&guests->index_of_vm, NULL),
				 digest_map(&guests->vcpu_of_tid, NULL),
				 digest_map(&guests->vcpu_of_number, NULL),
				 digest_map(&timeline->comm_of_tid, &timeline->comms),
				 digest_map(&timeline->comm_of_guest_tid, &timeline->comms),
				 timeline->last};
	XXH3_state_t *state = XXH3_createState();

	if (!state)
		vp_alloc_failed();
	XXH3_64bits_reset(state);
	XXH3_64bits_update(state, sums, sizeof(sums));
	vp_vec_each (&guests->vcpus, vcpu)
		digest_vcpu(state, vcpu, !timeline->no_homes);
	vp_vec_each (&timeline->pcpus, pcpu)
		digest_pcpu(state, pcpu, timeline->fill_period, !timeline->no_chains);
	uint64_t digest = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return digest;
}
