/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/merge.h"

#include "base/alloc.h"
#include "schema/records.h"

/* A stream that has ended has time UINT64_MAX and no record. */
static inline bool comes_before(const struct vp_merge_head *a, const struct vp_merge_head *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return !a->record == !b->record ? a->stream < b->stream : a->record != NULL;
}

static inline void head_set(struct vp_merge_head *head, const struct vp_record_header *record)
{
	head->record = record;
	head->time = record ? record->time : UINT64_MAX;
}

static inline void head_advance(const struct vp_merge *merge, struct vp_merge_head *head)
{
	head_set(head, vp_stream_next(merge->streams->at[head->stream]));
}

/* Plays the matches below `node`, stores the losers in the nodes and returns the winner. */
static uint32_t play(struct vp_merge *merge, uint32_t node)
{
	if (node >= merge->count)
		return node - merge->count;
	uint32_t left = play(merge, 2 * node), right = play(merge, 2 * node + 1);
	bool right_wins = comes_before(&merge->heads[right], &merge->heads[left]);
	merge->losers[node] = right_wins ? left : right;
	return right_wins ? right : left;
}

void vp_merge_init(struct vp_merge *merge, const vp_stream_readers *streams,
		   const struct vp_record_header *const *heads)
{
	*merge = (struct vp_merge){.streams = streams, .count = (uint32_t)streams->count};
	merge->heads = vp_alloc((streams->count + 1) * sizeof(*merge->heads));
	merge->losers = vp_alloc((streams->count + 1) * sizeof(*merge->losers));
	for (uint32_t i = 0; i < merge->count; i++) {
		merge->heads[i].stream = i;
		if (heads)
			head_set(&merge->heads[i], heads[i]);
		else
			head_advance(merge, &merge->heads[i]);
	}
	vp_merge_resume(merge);
}

/* The second of all heads has lost against the winner. */
static void find_rival(struct vp_merge *merge)
{
	uint64_t rival = UINT64_MAX;

	for (uint32_t node = (merge->winner + merge->count) / 2; node; node /= 2) {
		uint64_t time = merge->heads[merge->losers[node]].time;
		rival = time < rival ? time : rival;
	}
	merge->rival = rival;
}

void vp_merge_resume(struct vp_merge *merge)
{
	if (merge->count) {
		merge->winner = play(merge, 1);
		find_rival(merge);
	}
	merge->head_returned = false;
}

void vp_merge_advance(struct vp_merge *merge, uint32_t stream)
{
	head_advance(merge, &merge->heads[stream]);
}

void vp_merge_pause(struct vp_merge *merge)
{
	if (merge->head_returned)
		vp_merge_advance(merge, merge->winner);
	merge->head_returned = false;
}

void vp_merge_deinit(struct vp_merge *merge)
{
	free(merge->heads);
	free(merge->losers);
	*merge = (struct vp_merge){0};
}

/* The winner's stream has a new head: replays its matches up to the root. */
static inline void replay(struct vp_merge *merge)
{
	uint32_t winner = merge->winner;

	for (uint32_t node = (winner + merge->count) / 2; node; node /= 2) {
		uint32_t other = merge->losers[node];
		if (!comes_before(&merge->heads[other], &merge->heads[winner]))
			continue;
		merge->losers[node] = winner;
		winner = other;
	}
	merge->winner = winner;
	find_rival(merge);
}

const struct vp_merge_head *vp_merge_next_slow(struct vp_merge *merge)
{
	if (!merge->count)
		return NULL;
	if (merge->head_returned) {
		struct vp_merge_head *winner = &merge->heads[merge->winner];
		head_advance(merge, winner);
		if (winner->time >= merge->rival)
			replay(merge);
	}
	merge->head_returned = true;
	const struct vp_merge_head *head = &merge->heads[merge->winner];
	return head->record ? head : NULL;
}
