/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/export_queue.h"

static struct vp_export_batch *batch_at(struct vp_export_queue *queue, uint64_t number)
{
	return &queue->batches[number % VP_EXPORT_BATCHES];
}

static bool wait_for_one(struct vp_export_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->consumed == queue->submitted && !queue->ended)
		pthread_cond_wait(&queue->changed, &queue->lock);
	bool has_batch = queue->consumed < queue->submitted;
	pthread_mutex_unlock(&queue->lock);
	return has_batch;
}

static void *export_queue_take_all(void *context)
{
	struct vp_export_queue *queue = context;

	while (wait_for_one(queue)) {
		/* `taken` is modified only by this thread. */
		queue->take(queue->context, batch_at(queue, queue->consumed));
		pthread_mutex_lock(&queue->lock);
		queue->consumed++;
		pthread_cond_signal(&queue->changed);
		pthread_mutex_unlock(&queue->lock);
	}
	return NULL;
}

void vp_export_queue_begin(struct vp_export_queue *queue, bool threaded)
{
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
	queue->has_thread =
	    threaded && !pthread_create(&queue->thread, NULL, export_queue_take_all, queue);
}

struct vp_export_batch *vp_export_queue_batch(struct vp_export_queue *queue)
{
	return batch_at(queue, queue->submitted);
}

static void export_queue_empty(struct vp_export_batch *batch)
{
	batch->samples.count = 0;
	batch->frames.count = 0;
	batch->addresses.count = 0;
	batch->texts.count = 0;
	batch->vms.count = 0;
}

void vp_export_queue_submit(struct vp_export_queue *queue)
{
	if (queue->has_thread) {
		pthread_mutex_lock(&queue->lock);
		queue->submitted++;
		pthread_cond_signal(&queue->changed);
		while (queue->submitted - queue->consumed == VP_EXPORT_BATCHES)
			pthread_cond_wait(&queue->changed, &queue->lock);
		pthread_mutex_unlock(&queue->lock);
	} else {
		queue->take(queue->context, vp_export_queue_batch(queue));
	}
	export_queue_empty(vp_export_queue_batch(queue));
}

void vp_export_queue_end(struct vp_export_queue *queue)
{
	if (queue->has_thread) {
		pthread_mutex_lock(&queue->lock);
		queue->ended = true;
		pthread_cond_signal(&queue->changed);
		pthread_mutex_unlock(&queue->lock);
		pthread_join(queue->thread, NULL);
	}
	for (uint32_t i = 0; i < VP_EXPORT_BATCHES; i++) {
		vp_vec_deinit(&queue->batches[i].samples);
		vp_vec_deinit(&queue->batches[i].frames);
		vp_vec_deinit(&queue->batches[i].addresses);
		vp_vec_deinit(&queue->batches[i].texts);
		vp_vec_deinit(&queue->batches[i].vms);
	}
	pthread_cond_destroy(&queue->changed);
	pthread_mutex_destroy(&queue->lock);
}
