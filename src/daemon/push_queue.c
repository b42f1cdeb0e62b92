/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/push_queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define SECOND UINT64_C(1000000000)

static void push_queue_remove(struct vp_push_queue *queue, size_t index)
{
	free(queue->waiting.at[index].path);
	queue->waiting.count--;
	memmove(&queue->waiting.at[index], &queue->waiting.at[index + 1],
		(queue->waiting.count - index) * sizeof(*queue->waiting.at));
}

/* Drops the oldest profile that is not being sent. */
static void push_queue_drop_oldest(struct vp_push_queue *queue)
{
	if (!queue->overflowed)
		vp_vec_push(queue->notices,
			    vp_format("more than %d profiles are queued: the oldest are dropped",
				      VP_PUSH_MOST));
	push_queue_remove(queue, queue->process ? 1 : 0);
	queue->overflowed++;
}

void vp_push_queue_add(struct vp_push_queue *queue, const char *path, uint64_t seconds,
		       uint64_t window_s)
{
	for (uint64_t from = 0; from < seconds; from += window_s) {
		uint64_t to = from + window_s < seconds ? from + window_s : 0;
		vp_vec_push(&queue->waiting, ((struct vp_push){vp_strdup(path), from, to}));
		if (queue->waiting.count > VP_PUSH_MOST)
			push_queue_drop_oldest(queue);
	}
}

/* Retries after one second, then after twice the previous delay. */
static void push_queue_wait(struct vp_push_queue *queue, const char *why, uint64_t now)
{
	uint64_t wait = UINT64_C(1) << (queue->failures < 16 ? queue->failures : 16);

	if (!queue->failures++)
		vp_vec_push(queue->notices,
			    vp_format("profiles cannot be sent now and are queued: %s", why));
	queue->retry_at = now + SECOND * (wait < VP_PUSH_RETRY_MAX_S ? wait : VP_PUSH_RETRY_MAX_S);
}

static void push_queue_take_outcome(struct vp_push_queue *queue, enum vp_push_outcome outcome,
				    uint64_t now)
{
	queue->process = 0;
	if (outcome == VP_PUSH_LATER) {
		push_queue_wait(queue, "the server does not accept them", now);
		return;
	}
	queue->failures = 0;
	if (outcome == VP_PUSH_SENT)
		queue->sent++;
	else
		queue->refused++;
	push_queue_remove(queue, 0);
}

void vp_push_queue_step(struct vp_push_queue *queue, uint64_t now)
{
	enum vp_push_outcome outcome = VP_PUSH_SENT;

	if (queue->process && queue->ops->has_ended(queue->context, queue->process, &outcome))
		push_queue_take_outcome(queue, outcome, now);
	if (queue->process || !queue->waiting.count || now < queue->retry_at)
		return;
	VP_AUTO_ERROR struct vp_error *error =
	    queue->ops->start(queue->context, &queue->waiting.at[0], &queue->process);
	if (!error)
		return;
	queue->process = 0;
	push_queue_wait(queue, vp_error_message(error), now);
}

void vp_push_queue_deinit(struct vp_push_queue *queue)
{
	while (queue->waiting.count)
		push_queue_remove(queue, queue->waiting.count - 1);
	vp_vec_deinit(&queue->waiting);
}
