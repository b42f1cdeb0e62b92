/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/merge.h"

#include "base/alloc.h"

static bool comes_before(const struct vp_merge_head *a, const struct vp_merge_head *b)
{
	return a->time != b->time ? a->time < b->time : a->stream < b->stream;
}

static void sift_down(struct vp_merge *merge, uint32_t at)
{
	struct vp_merge_head moving = merge->heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= merge->count)
			break;
		if (child + 1 < merge->count &&
		    comes_before(&merge->heap[child + 1], &merge->heap[child]))
			child++;
		if (!comes_before(&merge->heap[child], &moving))
			break;
		merge->heap[at] = merge->heap[child];
		at = child;
	}
	merge->heap[at] = moving;
}

/* Reads the head's next record; false at the stream's end. */
static bool head_advance(const struct vp_merge *merge, struct vp_merge_head *head)
{
	head->record = vp_stream_next(merge->streams->at[head->stream]);
	if (head->record)
		head->time = head->record->time;
	return head->record;
}

void vp_merge_init(struct vp_merge *merge, const vp_stream_readers *streams)
{
	*merge = (struct vp_merge){.streams = streams};
	merge->heap = vp_alloc((streams->count + 1) * sizeof(*merge->heap));
	for (uint32_t i = 0; i < streams->count; i++) {
		struct vp_merge_head head = {.stream = i};
		if (head_advance(merge, &head))
			merge->heap[merge->count++] = head;
	}
	for (uint32_t i = merge->count / 2; i-- > 0;)
		sift_down(merge, i);
}

void vp_merge_deinit(struct vp_merge *merge)
{
	free(merge->heap);
	*merge = (struct vp_merge){0};
}

const struct vp_merge_head *vp_merge_next(struct vp_merge *merge)
{
	if (merge->taken) {
		if (!head_advance(merge, &merge->heap[0]))
			merge->heap[0] = merge->heap[--merge->count];
		if (merge->count)
			sift_down(merge, 0);
	}
	merge->taken = merge->count > 0;
	return merge->taken ? &merge->heap[0] : NULL;
}
