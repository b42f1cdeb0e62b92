/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples on their way from the pass, which names them, to the exporter, which has a thread of its
 * own: both work at once. A batch has all that its samples need, as the pass goes on meanwhile.
 */
#ifndef VP_ANALYZE_REPORT_EXPORT_QUEUE_H
#define VP_ANALYZE_REPORT_EXPORT_QUEUE_H

#include <pthread.h>

#include "analyze/profile/frame.h"
#include "base/vec.h"
#include "schema/vm.h"

/* Strings that somebody else has. */
typedef VP_VEC(const char *) vp_export_names;

struct vp_sample {
	uint64_t time;   /* ns of the host's clock; of a total: 0 */
	uint64_t weight; /* how many: of a total all of its stack's; else 1, but for idle ticks that
			  * were filled in */
	uint32_t pcpu;   /* VP_NONE: not known, or a total */
	uint32_t pid, tid;                        /* of the host's thread; 0: none, or a total */
	const struct vp_frame *frames;            /* outermost first, at least one */
	const struct vp_frame_address *addresses; /* of a total: NULL */
	uint32_t count;
};

struct vp_export_batch {
	VP_VEC(struct vp_sample) samples; /* by time; without their `frames` and `addresses` */
	VP_VEC(struct vp_frame) frames;   /* of one sample after another */
	VP_VEC(struct vp_frame_address) addresses;
	/* New facts since the previous batch. The strings are the pass's. */
	vp_export_names texts;
	vp_vms vms;
};

enum { VP_EXPORT_BATCH = 2048, VP_EXPORT_BATCHES = 3 };

struct vp_export_queue {
	/* Gets each batch, in order, in the exporter's thread. */
	void (*take)(void *context, const struct vp_export_batch *batch);
	void *context;
	struct vp_export_batch batches[VP_EXPORT_BATCHES];
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Below the lock: how many batches were handed on, and taken; no more will come. */
	uint64_t given, taken;
	bool ended;
};

/* Without `threaded`, or if there are no more threads, batches are taken where they are handed on.
 * `take` and `context` are filled in. */
void vp_export_queue_begin(struct vp_export_queue *queue, bool threaded);
/* The batch to be filled. */
struct vp_export_batch *vp_export_queue_batch(struct vp_export_queue *queue);
/* Passes it on; waits while the exporter has all batches. */
void vp_export_queue_submit(struct vp_export_queue *queue);
/* Waits until all is taken. */
void vp_export_queue_end(struct vp_export_queue *queue);

#endif
