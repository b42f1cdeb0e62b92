/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue of profiles of closed recordings to be sent, each about a window of time. One is sent at a
 * time; if the server cannot accept it now, it is retried with growing delays. Clock and processes
 * are abstracted (push_ops).
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
	char *path;            /* path of the recording */
	uint64_t from_s, to_s; /* seconds since the recording's start; to 0: its end */
};

enum vp_push_outcome { VP_PUSH_SENT, VP_PUSH_REFUSED, VP_PUSH_LATER };

struct vp_push_ops {
	/* Starts a process that sends it. Errors: fork failed. */
	struct vp_error *(*start)(void *context, const struct vp_push *push, pid_t *ret);
	/* Whether the process has ended, and the outcome. */
	bool (*has_ended)(void *context, pid_t process, enum vp_push_outcome *outcome);
};

struct vp_push_queue {
	const struct vp_push_ops *ops;
	void *context;
	vp_notices *notices;
	VP_VEC(struct vp_push) waiting; /* if there is a process, it is sending the first */
	pid_t process;
	uint64_t retry_at;
	unsigned failures; /* consecutive failures */
	/* Numbers of windows: sent; dropped because the queue was full; refused by the server. */
	uint64_t sent, overflowed, refused;
};

/* Adds the windows of a recording of that length. If the queue is full, drops the oldest ones. */
void vp_push_queue_add(struct vp_push_queue *queue, const char *path, uint64_t seconds,
		       uint64_t window_s);
/* Checks the process, and starts the next one; `now` is CLOCK_MONOTONIC, ns. */
void vp_push_queue_step(struct vp_push_queue *queue, uint64_t now);
void vp_push_queue_deinit(struct vp_push_queue *queue);

#endif
