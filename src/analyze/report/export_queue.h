/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue of samples from the pass, which names them, to the exporter, which runs in a thread of its
 * own. A batch contains everything that its samples need, because the pass continues meanwhile. */
#ifndef VP_ANALYZE_REPORT_EXPORT_QUEUE_H
#define VP_ANALYZE_REPORT_EXPORT_QUEUE_H

#include <pthread.h>

#include "analyze/profile/frame.h"
#include "base/vec.h"
#include "schema/vm.h"

/* Strings owned by others. */
typedef VP_VEC(const char *) vp_export_names;

struct vp_sample {
	uint64_t time;                 /* ns of the host's clock; 0 for a total */
	uint64_t weight;               /* weight; for a total, of all samples of its stack */
	uint32_t pcpu;                 /* VP_NONE: unknown, or a total */
	uint32_t pid, tid;             /* of the host thread; 0: none, or a total */
	const struct vp_frame *frames; /* outermost first, at least one */
	const struct vp_frame_address *addresses; /* NULL for a total */
	uint32_t count;
};

struct vp_export_batch {
	VP_VEC(struct vp_sample) samples; /* by time; their `frames` and `addresses` are not set */
	VP_VEC(struct vp_frame) frames;   /* of all samples, in order */
	VP_VEC(struct vp_frame_address) addresses;
	/* New since the previous batch. The strings belong to the pass. */
	vp_export_names texts;
	vp_vms vms;
};

enum { VP_EXPORT_BATCH = 2048, VP_EXPORT_BATCHES = 3 };

struct vp_export_queue {
	/* Receives each batch, in order, in the exporter's thread. */
	void (*take)(void *context, const struct vp_export_batch *batch);
	void *context;
	struct vp_export_batch batches[VP_EXPORT_BATCHES];
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Protected by the lock: number of batches submitted, and taken; end of the queue. */
	uint64_t submitted, consumed;
	bool ended;
};

/* Without `threaded`, or if no thread can be created, batches are processed by the submitter. The
 * caller sets `take` and `context`. */
void vp_export_queue_begin(struct vp_export_queue *queue, bool threaded);
/* The batch to fill. */
struct vp_export_batch *vp_export_queue_batch(struct vp_export_queue *queue);
/* Submits it; waits while all batches are in use. */
void vp_export_queue_submit(struct vp_export_queue *queue);
/* Waits until all batches were processed. */
void vp_export_queue_end(struct vp_export_queue *queue);

#endif
