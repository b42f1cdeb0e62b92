/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/track_store.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/text.h"

/*
 * Tables are limited because guests may have any number of threads with any names. FIRST_SHORTEST:
 * initial length in ns below which slices are merged; doubled as necessary. Tids, and so numbers of
 * tracks, have 22 bits.
 */
enum { MAX_THREADS = 4096, MAX_LABELS = 1 << 18, FIRST_SHORTEST = 1000, NUMBER_BITS = 22 };

void vp_track_store_init(struct vp_track_store *store, size_t most)
{
	*store = (struct vp_track_store){.most = most,
					 .label_keys = {.key_size = sizeof(struct vp_track_label)}};
}

void vp_track_store_deinit(struct vp_track_store *store)
{
	vp_vec_each (&store->tracks, track)
		vp_vec_deinit(&track->slices);
	vp_vec_deinit(&store->tracks);
	vp_vec_deinit(&store->labels);
	vp_key_set_deinit(&store->label_keys);
	vp_map_deinit(&store->track_of);
	vp_intern_deinit(&store->texts);
}

/* "make/4711", cleaned for HTML and terminals. */
static uint32_t thread_text(struct vp_track_store *store, const char *comm, uint32_t tid)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(comm ? comm : "?");
	VP_AUTO_FREE char *text = vp_format("%s/%" PRIu32, clean, tid);

	return vp_intern_string(&store->texts, text);
}

static uint32_t label_of(struct vp_track_store *store, const char *comm, uint32_t tid, uint32_t vm)
{
	bool inserted;

	if (store->labels.count == MAX_LABELS)
		return VP_NONE;
	struct vp_track_label label = {.text = thread_text(store, comm, tid), .vm = vm};
	uint32_t number = vp_key_set_add(&store->label_keys, &label, &inserted);

	if (inserted)
		vp_vec_push(&store->labels, label);
	return number;
}

/* NULL: the table is full. */
static struct vp_stored_track *
track_of(struct vp_track_store *store, enum vp_stored_track_kind kind, uint32_t vm, uint32_t number)
{
	uint64_t key = (uint64_t)vm << 32 | (uint64_t)kind << NUMBER_BITS | number;
	const uint32_t *index = vp_map_find(&store->track_of, key);
	bool inserted, is_thread = kind == VP_STORED_THREAD;

	if (index)
		return &store->tracks.at[*index];
	if (number >> NUMBER_BITS || (is_thread && store->threads == MAX_THREADS)) {
		store->left_out = true;
		return NULL;
	}
	store->threads += is_thread;
	vp_map_insert(&store->track_of, key, (uint32_t)store->tracks.count, &inserted);
	vp_vec_push(
	    &store->tracks,
	    ((struct vp_stored_track){.kind = kind, .number = number, .vm = vm, .name = VP_NONE}));
	return &store->tracks.at[store->tracks.count - 1];
}

static bool is_short(const struct vp_track_store *store, const struct vp_stored_slice *stored)
{
	return stored->end - stored->begin < store->shortest;
}

/* Merges two adjacent slices; the result has the dominant state. */
static void track_store_merge(struct vp_stored_slice *stored, const struct vp_stored_slice *next)
{
	if (stored->merged == 1)
		stored->parts[stored->state] = (float)stored->main;
	bool was_in_it = stored->parts[next->state] > 0; /* maybe with another label */
	if (next->merged == 1)
		stored->parts[next->state] += (float)next->main;
	for (int state = 0; next->merged > 1 && state < VP_TRACK_STATES; state++)
		stored->parts[state] += next->parts[state];
	if (stored->state == next->state) {
		stored->label = stored->label == next->label ? stored->label : VP_NONE;
	} else if (stored->parts[next->state] > stored->parts[stored->state]) {
		stored->state = next->state;
		stored->label = was_in_it ? VP_NONE : next->label;
	}
	stored->main = (uint64_t)stored->parts[stored->state];
	stored->end = next->end;
	stored->merged += next->merged;
}

static bool belong_together(const struct vp_track_store *store,
			    const struct vp_stored_slice *stored,
			    const struct vp_stored_slice *next)
{
	return is_short(store, stored) && is_short(store, next) &&
	       next->begin - stored->end < store->shortest;
}

static void compact_track(struct vp_track_store *store, struct vp_stored_track *track)
{
	size_t kept = 0;

	for (size_t i = 0; i < track->slices.count; i++) {
		const struct vp_stored_slice *next = &track->slices.at[i];
		if (kept && belong_together(store, &track->slices.at[kept - 1], next))
			track_store_merge(&track->slices.at[kept - 1], next);
		else
			track->slices.at[kept++] = *next;
	}
	store->slices -= track->slices.count - kept;
	track->slices.count = kept;
}

static void compact(struct vp_track_store *store, size_t wanted)
{
	while (store->slices > wanted) {
		store->shortest = store->shortest ? 2 * store->shortest : FIRST_SHORTEST;
		vp_vec_each (&store->tracks, track)
			compact_track(store, track);
	}
}

/* Adds a slice. Slices of a track do not overlap: a late event starts where the previous slice
 * ended. */
static void add_slice(struct vp_track_store *store, struct vp_stored_track *track,
		      struct vp_stored_slice stored)
{
	if (!track)
		return;
	struct vp_stored_slice *last =
	    track->slices.count ? &track->slices.at[track->slices.count - 1] : NULL;

	if (last && stored.begin < last->end)
		stored.begin = last->end;
	if (stored.begin >= stored.end)
		return;
	stored.main = stored.end - stored.begin;
	if (last && belong_together(store, last, &stored)) {
		track_store_merge(last, &stored);
		return;
	}
	vp_vec_push(&track->slices, stored);
	if (++store->slices >= 2 * store->most)
		compact(store, store->most);
}

static void take_pcpu(struct vp_track_store *store, const struct vp_track_slice *slice,
		      struct vp_stored_slice stored)
{
	if (slice->state == VP_TRACK_RUNNING)
		stored.label =
		    label_of(store, slice->comm, slice->tid, slice->has_vcpu ? slice->vm : VP_NONE);
	add_slice(store, track_of(store, VP_STORED_PCPU, 0, slice->pcpu), stored);
}

/* Label of a vCPU slice: the guest thread in guest mode; the thief while it waits. */
static void track_store_take_vcpu(struct vp_track_store *store, const struct vp_track_slice *slice,
				  struct vp_stored_slice stored)
{
	if (slice->has_thief)
		stored.label = label_of(store, slice->thief_comm, slice->thief_tid, VP_NONE);
	else if (slice->has_guest)
		stored.label = label_of(store, slice->guest_comm, slice->guest_tid, slice->vm);
	add_slice(store, track_of(store, VP_STORED_VCPU, slice->vm, slice->vcpu), stored);
}

/* Thread 0 is the guest's idle task; there is one per vCPU. */
static void track_store_take_thread(struct vp_track_store *store,
				    const struct vp_track_slice *slice,
				    const struct vp_stored_slice *stored)
{
	if (!slice->has_guest || !slice->guest_tid)
		return;
	struct vp_stored_track *track =
	    track_of(store, VP_STORED_THREAD, slice->vm, slice->guest_tid);
	if (track && slice->guest_comm)
		track->name = thread_text(store, slice->guest_comm, slice->guest_tid);
	add_slice(store, track, *stored);
}

void vp_track_store_take(struct vp_track_store *store, const struct vp_track_slice *slice)
{
	struct vp_stored_slice stored = {.begin = slice->begin,
					 .end = slice->end,
					 .label = VP_NONE,
					 .pcpu = slice->pcpu,
					 .merged = 1,
					 .state = slice->state};

	if (slice->track == VP_TRACK_PCPU) {
		take_pcpu(store, slice, stored);
		return;
	}
	track_store_take_vcpu(store, slice, stored);
	track_store_take_thread(store, slice, &stored);
}

void vp_track_store_close(struct vp_track_store *store)
{
	compact(store, store->most);
}
