/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/lane_store.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/text.h"

/*
 * A guest may have as many threads as it wants, and name them as it likes. FIRST_SHORTEST: ns below
 * which slices become one; doubled as often as needed. Numbers of threads, and so of lanes, have 22
 * bits.
 */
enum { MAX_THREADS = 4096, MAX_LABELS = 1 << 18, FIRST_SHORTEST = 1000, NUMBER_BITS = 22 };

void vp_lane_store_init(struct vp_lane_store *store, size_t most)
{
	*store = (struct vp_lane_store){.most = most,
					.label_keys = {.key_size = sizeof(struct vp_lane_label)}};
}

void vp_lane_store_deinit(struct vp_lane_store *store)
{
	vp_vec_each (&store->lanes, lane)
		vp_vec_deinit(&lane->slices);
	vp_vec_deinit(&store->lanes);
	vp_vec_deinit(&store->labels);
	vp_key_set_deinit(&store->label_keys);
	vp_map_deinit(&store->lane_of);
	vp_intern_deinit(&store->texts);
}

/* "make/4711", without what a page or a terminal could take for more than text. */
static uint32_t thread_text(struct vp_lane_store *store, const char *comm, uint32_t tid)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(comm ? comm : "?");
	VP_AUTO_FREE char *text = vp_format("%s/%" PRIu32, clean, tid);

	return vp_intern_string(&store->texts, text);
}

static uint32_t label_of(struct vp_lane_store *store, const char *comm, uint32_t tid, uint32_t vm)
{
	bool inserted;

	if (store->labels.count == MAX_LABELS)
		return VP_NONE;
	struct vp_lane_label label = {.text = thread_text(store, comm, tid), .vm = vm};
	uint32_t number = vp_key_set_add(&store->label_keys, &label, &inserted);

	if (inserted)
		vp_vec_push(&store->labels, label);
	return number;
}

/* NULL: there is no room for another thread. */
static struct vp_stored_lane *lane_of(struct vp_lane_store *store, enum vp_stored_lane_kind kind,
				      uint32_t vm, uint32_t number)
{
	uint64_t key = (uint64_t)vm << 32 | (uint64_t)kind << NUMBER_BITS | number;
	const uint32_t *index = vp_map_find(&store->lane_of, key);
	bool inserted, is_thread = kind == VP_STORED_THREAD;

	if (index)
		return &store->lanes.at[*index];
	if (number >> NUMBER_BITS || (is_thread && store->threads == MAX_THREADS)) {
		store->left_out = true;
		return NULL;
	}
	store->threads += is_thread;
	vp_map_insert(&store->lane_of, key, (uint32_t)store->lanes.count, &inserted);
	vp_vec_push(&store->lanes, ((struct vp_stored_lane){
				       .kind = kind, .number = number, .vm = vm, .name = VP_NONE}));
	return &store->lanes.at[store->lanes.count - 1];
}

static bool is_short(const struct vp_lane_store *store, const struct vp_lane_slice *slice)
{
	return slice->end - slice->begin < store->shortest;
}

/* Two neighbours as one, in the state that has most of it. */
static void lane_store_merge(struct vp_lane_slice *slice, const struct vp_lane_slice *next)
{
	if (slice->merged == 1)
		slice->parts[slice->state] = (float)slice->main;
	bool was_in_it =
	    slice->parts[next->state] > 0; /* in next's state, maybe with another label */
	if (next->merged == 1)
		slice->parts[next->state] += (float)next->main;
	for (int state = 0; next->merged > 1 && state < VP_LANE_STATES; state++)
		slice->parts[state] += next->parts[state];
	if (slice->state == next->state) {
		slice->label = slice->label == next->label ? slice->label : VP_NONE;
	} else if (slice->parts[next->state] > slice->parts[slice->state]) {
		slice->state = next->state;
		slice->label = was_in_it ? VP_NONE : next->label;
	}
	slice->main = (uint64_t)slice->parts[slice->state];
	slice->end = next->end;
	slice->merged += next->merged;
}

static bool belong_together(const struct vp_lane_store *store, const struct vp_lane_slice *slice,
			    const struct vp_lane_slice *next)
{
	return is_short(store, slice) && is_short(store, next) &&
	       next->begin - slice->end < store->shortest;
}

static void compact_lane(struct vp_lane_store *store, struct vp_stored_lane *lane)
{
	size_t kept = 0;

	for (size_t i = 0; i < lane->slices.count; i++) {
		const struct vp_lane_slice *next = &lane->slices.at[i];
		if (kept && belong_together(store, &lane->slices.at[kept - 1], next))
			lane_store_merge(&lane->slices.at[kept - 1], next);
		else
			lane->slices.at[kept++] = *next;
	}
	store->slices -= lane->slices.count - kept;
	lane->slices.count = kept;
}

static void compact(struct vp_lane_store *store, size_t wanted)
{
	while (store->slices > wanted) {
		store->shortest = store->shortest ? 2 * store->shortest : FIRST_SHORTEST;
		vp_vec_each (&store->lanes, lane)
			compact_lane(store, lane);
	}
}

/* Slices of a lane do not overlap: an event that came late begins where the one before ended. */
static void add_slice(struct vp_lane_store *store, struct vp_stored_lane *lane,
		      struct vp_lane_slice slice)
{
	if (!lane)
		return;
	struct vp_lane_slice *last =
	    lane->slices.count ? &lane->slices.at[lane->slices.count - 1] : NULL;

	if (last && slice.begin < last->end)
		slice.begin = last->end;
	if (slice.begin >= slice.end)
		return;
	slice.main = slice.end - slice.begin;
	if (last && belong_together(store, last, &slice)) {
		lane_store_merge(last, &slice);
		return;
	}
	vp_vec_push(&lane->slices, slice);
	if (++store->slices >= 2 * store->most)
		compact(store, store->most);
}

static void take_pcpu(struct vp_lane_store *store, const struct vp_period *period,
		      struct vp_lane_slice slice)
{
	if (period->state == VP_LANE_RUNNING)
		slice.label = label_of(store, period->comm, period->tid,
				       period->has_vcpu ? period->vm : VP_NONE);
	add_slice(store, lane_of(store, VP_STORED_PCPU, 0, period->pcpu), slice);
}

/* In the guest, the guest's thread; while it waits, who has the pCPU. */
static void lane_store_take_vcpu(struct vp_lane_store *store, const struct vp_period *period,
				 struct vp_lane_slice slice)
{
	if (period->has_thief)
		slice.label = label_of(store, period->thief_comm, period->thief_tid, VP_NONE);
	else if (period->has_guest)
		slice.label = label_of(store, period->guest_comm, period->guest_tid, period->vm);
	add_slice(store, lane_of(store, VP_STORED_VCPU, period->vm, period->vcpu), slice);
}

/* Thread 0 is the guest's idle task, one on each vCPU. */
static void lane_store_take_thread(struct vp_lane_store *store, const struct vp_period *period,
				   const struct vp_lane_slice *slice)
{
	if (!period->has_guest || !period->guest_tid)
		return;
	struct vp_stored_lane *lane =
	    lane_of(store, VP_STORED_THREAD, period->vm, period->guest_tid);
	if (lane && period->guest_comm)
		lane->name = thread_text(store, period->guest_comm, period->guest_tid);
	add_slice(store, lane, *slice);
}

void vp_lane_store_take(struct vp_lane_store *store, const struct vp_period *period)
{
	struct vp_lane_slice slice = {.begin = period->begin,
				      .end = period->end,
				      .label = VP_NONE,
				      .pcpu = period->pcpu,
				      .merged = 1,
				      .state = period->state};

	if (period->lane == VP_LANE_PCPU) {
		take_pcpu(store, period, slice);
		return;
	}
	lane_store_take_vcpu(store, period, slice);
	lane_store_take_thread(store, period, &slice);
}

void vp_lane_store_close(struct vp_lane_store *store)
{
	compact(store, store->most);
}
