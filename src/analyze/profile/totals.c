/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/totals.h"

#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

struct node_key {
	uint32_t parent, frame;
};

void vp_totals_init(struct vp_totals *totals)
{
	*totals = (struct vp_totals){.node_keys = {.key_size = sizeof(struct node_key)}};
}

void vp_totals_deinit(struct vp_totals *totals)
{
	vp_vec_deinit(&totals->parts);
	vp_vec_deinit(&totals->reasons);
	vp_map_deinit(&totals->reason_of);
	vp_vec_deinit(&totals->samples);
	vp_key_set_deinit(&totals->node_keys);
	vp_vec_deinit(&totals->ended);
	vp_vec_deinit(&totals->within);
	vp_vec_deinit(&totals->seen_in);
}

void vp_totals_add(struct vp_totals *totals, uint32_t frame, uint64_t weight)
{
	while (totals->samples.count <= frame)
		vp_vec_push(&totals->samples, 0);
	totals->samples.at[frame] += weight;
}

void vp_totals_take(struct vp_totals *totals, const struct vp_resolved *samples, uint32_t count,
		    bool by_frame)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct vp_resolved *sample = &samples[i];
		if (by_frame && sample->frame != VP_NONE)
			vp_totals_add(totals, sample->frame, sample->weight);
		totals->unattributed += sample->named ? 0 : sample->weight;
		if (sample->guest)
			totals->routes[sample->route] += sample->weight;
	}
}

static uint32_t node_of(struct vp_totals *totals, uint32_t parent, uint32_t frame)
{
	struct node_key key = {parent, frame};
	bool inserted;
	uint32_t node = vp_key_set_add(&totals->node_keys, &key, &inserted);

	if (inserted)
		vp_vec_push(&totals->ended, 0);
	return node;
}

static void make_room_within(struct vp_totals *totals, uint32_t frame)
{
	while (totals->within.count <= frame) {
		vp_vec_push(&totals->within, 0);
		vp_vec_push(&totals->seen_in, 0);
	}
}

/* Counts the stack once for each distinct frame. */
static void add_within(struct vp_totals *totals, uint32_t frame, uint64_t weight)
{
	make_room_within(totals, frame);
	if (totals->seen_in.at[frame] != totals->stacks)
		totals->within.at[frame] += weight;
	totals->seen_in.at[frame] = totals->stacks;
}

void vp_totals_add_stack(struct vp_totals *totals, const uint32_t *frames, uint32_t count,
			 uint64_t weight)
{
	uint32_t node = VP_NONE;

	totals->stacks++;
	for (uint32_t i = 0; i < count; i++) {
		node = node_of(totals, node, frames[i]);
		add_within(totals, frames[i], weight);
	}
	if (count)
		totals->ended.at[node] += weight;
}

void vp_totals_close_stacks(struct vp_totals *totals)
{
	size_t frames = totals->samples.count, nodes = totals->ended.count;
	uint64_t *ended = vp_realloc_array(NULL, frames + 1, sizeof(*ended));

	memset(ended, 0, (frames + 1) * sizeof(*ended));
	for (uint32_t i = 0; i < nodes; i++) {
		const struct node_key *key = vp_key_set_key(&totals->node_keys, i);
		if (key->frame < frames)
			ended[key->frame] += totals->ended.at[i];
	}
	for (uint32_t frame = 0; frame < frames; frame++) {
		uint64_t counted = totals->samples.at[frame];
		if (counted > ended[frame])
			vp_totals_add_stack(totals, &frame, 1, counted - ended[frame]);
	}
	free(ended);
}

struct vp_profile_node vp_totals_node(const struct vp_totals *totals, uint32_t node)
{
	const struct node_key *key = vp_key_set_key(&totals->node_keys, node);

	return (struct vp_profile_node){key->parent, key->frame, totals->ended.at[node]};
}

uint32_t vp_totals_reason(struct vp_totals *totals, uint32_t frame, const struct vp_exit *exit)
{
	struct vp_exit reason = exit->known ? *exit : (struct vp_exit){0};
	uint64_t key = (uint64_t)frame << 35 | (uint64_t)reason.known << 34 |
		       (uint64_t)(reason.vendor & 3) << 32 | reason.reason;
	bool inserted;

	uint32_t *number =
	    vp_map_insert(&totals->reason_of, key, (uint32_t)totals->reasons.count, &inserted);
	if (inserted)
		vp_vec_push(&totals->reasons,
			    ((struct vp_profile_reason){.row = frame, .exit = reason}));
	return *number;
}

static void merge_stacks(struct vp_totals *totals, const struct vp_totals *from,
			 const uint32_t *frame_of)
{
	size_t count = from->ended.count;
	uint32_t *nodes = vp_realloc_array(NULL, count, sizeof(*nodes));

	for (uint32_t i = 0; i < count; i++) {
		const struct node_key *key = vp_key_set_key(&from->node_keys, i);
		uint32_t parent = key->parent == VP_NONE ? VP_NONE : nodes[key->parent];
		nodes[i] = node_of(totals, parent, frame_of[key->frame]);
		totals->ended.at[nodes[i]] += from->ended.at[i];
	}
	free(nodes);
	for (uint32_t i = 0; i < from->within.count; i++) {
		make_room_within(totals, frame_of[i]);
		totals->within.at[frame_of[i]] += from->within.at[i];
	}
	totals->stacks += from->stacks;
}

static uint32_t totals_part(struct vp_totals *totals, uint32_t vm, uint32_t vcpu)
{
	vp_profile_parts *parts = &totals->parts;
	uint32_t at = 0;

	while (at < parts->count &&
	       (parts->at[at].vcpu != vcpu || (vcpu != VP_NONE && parts->at[at].vm != vm)))
		at++;
	if (at == parts->count)
		vp_vec_push(parts, ((struct vp_profile_part){.vm = vm, .vcpu = vcpu}));
	return at;
}

uint32_t *vp_totals_merge_parts(struct vp_totals *totals, const struct vp_totals *from,
				const uint32_t *vm_of)
{
	uint32_t *part_of = vp_realloc_array(NULL, from->parts.count, sizeof(*part_of));

	for (uint32_t i = 0; i < from->parts.count; i++) {
		const struct vp_profile_part *part = &from->parts.at[i];
		uint32_t vm = vm_of && part->vm != VP_NONE ? vm_of[part->vm] : part->vm;
		part_of[i] = totals_part(totals, vm, part->vcpu);
	}
	return part_of;
}

void vp_totals_merge(struct vp_totals *totals, const struct vp_totals *from,
		     const uint32_t *part_of, const uint32_t *frame_of)
{
	for (uint32_t i = 0; i < from->parts.count; i++) {
		struct vp_profile_part *part = &totals->parts.at[part_of[i]];
		part->samples += from->parts.at[i].samples;
		for (uint32_t kind = 0; kind < VP_KINDS; kind++)
			part->kinds[kind] += from->parts.at[i].kinds[kind];
	}
	for (uint32_t i = 0; i < from->samples.count; i++)
		vp_totals_add(totals, frame_of[i], from->samples.at[i]);
	vp_vec_each (&from->reasons, reason) {
		uint32_t number = vp_totals_reason(totals, frame_of[reason->row], &reason->exit);
		totals->reasons.at[number].count += reason->count;
	}
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		totals->routes[route] += from->routes[route];
	totals->unattributed += from->unattributed;
	merge_stacks(totals, from, frame_of);
}
