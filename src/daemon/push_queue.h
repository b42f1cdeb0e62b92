/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles of closed recordings that wait to be sent, a window of time each. One is sent at a time;
 * a server that does not take one now is asked again, later each time. Works on any clock and any
 * process (push_ops).
 */
#ifndef VP_DAEMON_PUSH_QUEUE_H
#define VP_DAEMON_PUSH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/notices.h"
#include "base/vec.h"

enum { VP_PUSH_MOST = 512, VP_PUSH_RETRY_MAX_S = 300 };

struct vp_push {
	char *path;            /* of the recording */
	uint64_t from_s, to_s; /* seconds since its start; to 0: its end */
};

enum vp_push_outcome { VP_PUSH_SENT, VP_PUSH_REFUSED, VP_PUSH_LATER };

struct vp_push_ops {
	/* Starts a process that sends it. Errors: no process. */
	struct vp_error *(*start)(void *context, const struct vp_push *push, pid_t *ret);
	/* Whether it has ended, and how. */
	bool (*has_ended)(void *context, pid_t process, enum vp_push_outcome *outcome);
};

struct vp_push_queue {
	const struct vp_push_ops *ops;
	void *context;
	vp_notices *notices;
	VP_VEC(struct vp_push) waiting; /* the first is being sent if there is a process */
	pid_t process;
	uint64_t retry_at;
	unsigned failures; /* in a row */
	/* Windows so far, and those that were not sent: there were too many, or they were refused.
	 */
	uint64_t sent, overflowed, refused;
};

/* Adds the windows of a recording of that length. If there are too many, the oldest go. */
void vp_push_queue_add(struct vp_push_queue *queue, const char *path, uint64_t seconds,
		       uint64_t window_s);
/* Looks at the process, and starts what is next; `now` is CLOCK_MONOTONIC, ns. */
void vp_push_queue_step(struct vp_push_queue *queue, uint64_t now);
void vp_push_queue_deinit(struct vp_push_queue *queue);

#endif
