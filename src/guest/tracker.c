/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest/tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

void vp_tracker_init(struct vp_tracker *tracker)
{
	*tracker = (struct vp_tracker){.next_id = 1, .max_bytes = VP_TRACKER_MAX_BYTES};
}

void vp_tracker_deinit(struct vp_tracker *tracker)
{
	vp_vec_each (&tracker->images, image)
		free(image->path);
	vp_vec_deinit(&tracker->images);
	vp_intern_deinit(&tracker->image_ids);
	vp_map_deinit(&tracker->space_of_tgid);
	vp_vec_deinit(&tracker->pending);
	vp_vec_deinit(&tracker->spaces);
	vp_vec_deinit(&tracker->mappings);
}

void vp_tracker_add(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	vp_vec_push(&tracker->pending, *event);
}

uint32_t vp_tracker_image(struct vp_tracker *tracker, const struct vp_build_id *id,
			  const char *path)
{
	static const char deleted[] =
	    " (deleted)"; /* suffix used by the kernel in /proc and perf */
	struct vp_buffer key = {0};
	size_t size = strlen(path), mark = sizeof(deleted) - 1;

	if (size > mark && !strcmp(path + size - mark, deleted))
		size -= mark;
	if (tracker->path_bytes > VP_TRACKER_MAX_PATH_BYTES) {
		tracker->forgotten_paths++;
		path = "//forgotten";
		size = strlen(path);
		id = NULL;
	}
	vp_build_id_put(id, &key);
	vp_buffer_string(&key, " ");
	vp_buffer_append(&key, path, size);
	uint32_t image = vp_intern_add(&tracker->image_ids, vp_buffer_text(&key), key.size);
	vp_buffer_deinit(&key);
	if (image == tracker->images.count) {
		struct vp_tracker_image added = {.path = vp_strndup(path, size)};
		if (id)
			added.build_id = *id;
		vp_vec_push(&tracker->images, added);
		tracker->path_bytes += 3 * size + sizeof(added);
	}
	return image;
}

uint32_t vp_tracker_space_of(const struct vp_tracker *tracker, uint32_t tgid)
{
	uint32_t *space = vp_map_find(&tracker->space_of_tgid, tgid);

	return space ? *space : VP_TRACKER_NONE;
}

static void set_space(struct vp_tracker *tracker, uint32_t tgid, uint32_t space)
{
	bool inserted;

	*vp_map_insert(&tracker->space_of_tgid, tgid, space, &inserted) = space;
}

static struct vp_tracker_space *tracker_begin_space(struct vp_tracker *tracker,
						    const struct vp_tracker_event *event,
						    uint64_t start_ns)
{
	struct vp_tracker_space *space = vp_vec_push_slot(&tracker->spaces);

	*space = (struct vp_tracker_space){
	    .id = tracker->next_id++,
	    .root = event->root,
	    .start_ns = start_ns,
	    .tgid = event->tgid,
	    .parent = VP_TRACKER_NONE,
	    .first_mapping = VP_TRACKER_NONE,
	    .last_mapping = VP_TRACKER_NONE,
	};
	memcpy(space->comm, event->comm, sizeof(space->comm));
	set_space(tracker, event->tgid, (uint32_t)tracker->spaces.count - 1);
	return space;
}

/* The process leaves its address space. A shared one (vfork) belongs to the parent and
 * continues. */
static void end_space(struct vp_tracker *tracker, uint32_t tgid, uint64_t time_ns)
{
	uint32_t number = vp_tracker_space_of(tracker, tgid);

	if (number == VP_TRACKER_NONE)
		return;
	if (tracker->spaces.at[number].tgid == tgid)
		tracker->spaces.at[number].end_ns = time_ns;
	set_space(tracker, tgid, VP_TRACKER_NONE);
}

static void on_existing(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	uint32_t number = vp_tracker_space_of(tracker, event->tgid);

	if (number == VP_TRACKER_NONE)
		tracker_begin_space(tracker, event, 0);
	else if (!tracker->spaces.at[number].root)
		tracker->spaces.at[number].root = event->root;
}

static void tracker_on_fork(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	uint32_t parent = vp_tracker_space_of(tracker, event->parent);

	/* The pid is reused: the end of its previous process was missed. */
	end_space(tracker, event->tgid, event->time_ns);
	if (event->shared) {
		set_space(tracker, event->tgid, parent);
		return;
	}
	struct vp_tracker_space *space = tracker_begin_space(tracker, event, event->time_ns);
	if (parent != VP_TRACKER_NONE) {
		space->parent = parent;
		tracker->spaces.at[parent].children++;
	}
}

static void on_exec_begin(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	end_space(tracker, event->tgid, event->time_ns);
	tracker_begin_space(tracker, event, event->time_ns)->exec_under_way = true;
}

static void on_exec_done(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	uint32_t number = vp_tracker_space_of(tracker, event->tgid);
	struct vp_tracker_space *space =
	    number == VP_TRACKER_NONE ? NULL : &tracker->spaces.at[number];

	if (!space || !space->exec_under_way || space->tgid != event->tgid) {
		end_space(tracker, event->tgid, event->time_ns);
		space = tracker_begin_space(tracker, event, event->time_ns);
	}
	space->root = event->root;
	space->exec_under_way = false;
	memcpy(space->comm, event->comm, sizeof(space->comm));
}

static void tracker_on_comm(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	uint32_t number = vp_tracker_space_of(tracker, event->tgid);

	if (number != VP_TRACKER_NONE && tracker->spaces.at[number].tgid == event->tgid)
		memcpy(tracker->spaces.at[number].comm, event->comm, sizeof(event->comm));
}

static bool is_mapped(const struct vp_tracker *tracker, uint32_t space,
		      const struct vp_tracker_event *event)
{
	/* A forked process starts with its parent's mappings. */
	for (unsigned depth = 0; space != VP_TRACKER_NONE && depth < 64; depth++) {
		uint32_t i = tracker->spaces.at[space].first_mapping;
		for (; i != VP_TRACKER_NONE; i = tracker->mappings.at[i].next) {
			const struct vp_tracker_mapping *known = &tracker->mappings.at[i];
			if (known->start <= event->start && known->end >= event->end &&
			    known->pgoff + (event->start - known->start) == event->pgoff &&
			    !strcmp(tracker->images.at[known->image].path,
				    tracker->images.at[event->image].path))
				return true;
		}
		space = tracker->spaces.at[space].parent;
	}
	return false;
}

static void on_map(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	uint32_t number = vp_tracker_space_of(tracker, event->tgid);
	bool seen = event->kind == VP_TRACKER_MAP_SEEN;

	/* The start of the process was lost. */
	if (number == VP_TRACKER_NONE) {
		struct vp_tracker_event birth = {.tgid = event->tgid};
		tracker_begin_space(tracker, &birth, seen ? 0 : event->time_ns);
		number = (uint32_t)tracker->spaces.count - 1;
	}
	if (seen && is_mapped(tracker, number, event))
		return;
	struct vp_tracker_space *space = &tracker->spaces.at[number];
	uint32_t mapping = (uint32_t)tracker->mappings.count;
	vp_vec_push(&tracker->mappings,
		    ((struct vp_tracker_mapping){.start = event->start,
						 .end = event->end,
						 .pgoff = event->pgoff,
						 .from_ns = seen ? space->start_ns : event->time_ns,
						 .image = event->image,
						 .next = VP_TRACKER_NONE}));
	tracker->images.at[event->image].tgid = event->tgid;
	if (space->last_mapping == VP_TRACKER_NONE)
		space->first_mapping = mapping;
	else
		tracker->mappings.at[space->last_mapping].next = mapping;
	space->last_mapping = mapping;
}

static void apply_event(struct vp_tracker *tracker, const struct vp_tracker_event *event)
{
	switch ((enum vp_tracker_kind)event->kind) {
	case VP_TRACKER_EXISTING:
		on_existing(tracker, event);
		break;
	case VP_TRACKER_FORK:
		tracker_on_fork(tracker, event);
		break;
	case VP_TRACKER_EXEC_BEGIN:
		on_exec_begin(tracker, event);
		break;
	case VP_TRACKER_EXEC_DONE:
		on_exec_done(tracker, event);
		break;
	case VP_TRACKER_EXIT:
		end_space(tracker, event->tgid, event->time_ns);
		break;
	case VP_TRACKER_COMM:
		tracker_on_comm(tracker, event);
		break;
	case VP_TRACKER_MAP:
	case VP_TRACKER_MAP_SEEN:
		on_map(tracker, event);
		break;
	}
}

static size_t bytes_used(const struct vp_tracker *tracker)
{
	return tracker->spaces.count * sizeof(*tracker->spaces.at) +
	       tracker->mappings.count * sizeof(*tracker->mappings.at);
}

/* The number of spaces that ended and are no ancestor of a kept space; stores their end times in
 * `ends`. */
static size_t collect_ended(const struct vp_tracker *tracker, uint64_t *ends)
{
	size_t count = 0;

	vp_vec_each (&tracker->spaces, space)
		if (space->end_ns && !space->children)
			ends[count++] = space->end_ns;
	return count;
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Moves the mappings of a kept space to the new pool. */
static void keep_mappings(struct vp_tracker *tracker, struct vp_tracker_space *space,
			  struct vp_tracker *fresh)
{
	uint32_t i = space->first_mapping;

	space->first_mapping = space->last_mapping = VP_TRACKER_NONE;
	for (; i != VP_TRACKER_NONE; i = tracker->mappings.at[i].next) {
		uint32_t moved = (uint32_t)fresh->mappings.count;
		vp_vec_push(&fresh->mappings, tracker->mappings.at[i]);
		fresh->mappings.at[moved].next = VP_TRACKER_NONE;
		if (space->last_mapping == VP_TRACKER_NONE)
			space->first_mapping = moved;
		else
			fresh->mappings.at[space->last_mapping].next = moved;
		space->last_mapping = moved;
	}
}

/* Rebuilds spaces and mappings without those that ended before or at `end_ns`. */
static void forget_until(struct vp_tracker *tracker, uint64_t end_ns)
{
	struct vp_tracker fresh = {0};
	uint32_t *new_number = vp_realloc_array(NULL, tracker->spaces.count, sizeof(*new_number));

	for (size_t i = 0; i < tracker->spaces.count; i++) {
		struct vp_tracker_space *space = &tracker->spaces.at[i];
		bool has_parent = space->parent != VP_TRACKER_NONE;
		new_number[i] = VP_TRACKER_NONE;
		if (space->end_ns && !space->children && space->end_ns <= end_ns) {
			tracker->forgotten++;
			/* Parents precede their children, so the parent has been moved already. */
			if (has_parent && new_number[space->parent] != VP_TRACKER_NONE)
				fresh.spaces.at[new_number[space->parent]].children--;
			continue;
		}
		new_number[i] = (uint32_t)fresh.spaces.count;
		keep_mappings(tracker, space, &fresh);
		if (has_parent)
			space->parent = new_number[space->parent];
		vp_vec_push(&fresh.spaces, *space);
	}
	for (uint64_t i = 0; tracker->space_of_tgid.slots && i <= tracker->space_of_tgid.mask;
	     i++) {
		struct vp_map_slot *slot = &tracker->space_of_tgid.slots[i];
		if (slot->used && slot->value != VP_TRACKER_NONE)
			slot->value = new_number[slot->value];
	}
	free(new_number);
	free(tracker->spaces.at);
	free(tracker->mappings.at);
	memcpy(&tracker->spaces, &fresh.spaces, sizeof(fresh.spaces));
	memcpy(&tracker->mappings, &fresh.mappings, sizeof(fresh.mappings));
}

/* Over the limit: drops the older half of the ended spaces. */
static void bound_memory(struct vp_tracker *tracker)
{
	if (bytes_used(tracker) <= tracker->max_bytes)
		return;
	uint64_t *ends = vp_realloc_array(NULL, tracker->spaces.count, sizeof(*ends));
	size_t count = collect_ended(tracker, ends);
	qsort(ends, count, sizeof(*ends), by_value);
	if (count)
		forget_until(tracker, ends[count / 2]);
	free(ends);
}

struct ordered_event {
	uint64_t time_ns;
	size_t number; /* in order of arrival */
};

static int by_event_time(const void *left, const void *right)
{
	const struct ordered_event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

void vp_tracker_apply(struct vp_tracker *tracker, uint64_t until_ns)
{
	enum { BETWEEN_CHECKS = 1024 };
	size_t count = tracker->pending.count, kept = 0;
	struct ordered_event *order = vp_realloc_array(NULL, count, sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = (struct ordered_event){tracker->pending.at[i].time_ns, i};
	qsort(order, count, sizeof(*order), by_event_time);
	for (size_t i = 0; i < count && order[i].time_ns <= until_ns; i++) {
		apply_event(tracker, &tracker->pending.at[order[i].number]);
		if (i % BETWEEN_CHECKS == 0)
			bound_memory(tracker);
	}
	for (size_t i = 0; i < count; i++)
		if (tracker->pending.at[i].time_ns > until_ns)
			tracker->pending.at[kept++] = tracker->pending.at[i];
	tracker->pending.count = kept;
	free(order);
}
