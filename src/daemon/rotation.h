/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings one after another: each is a recorder process of its own. The next one is started
 * before the last is asked to end, so that no time is lost between them; one that ended by itself
 * is started again, later each time it fails. Works on any clock and any processes (rotation_ops).
 */
#ifndef VP_DAEMON_ROTATION_H
#define VP_DAEMON_ROTATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/notices.h"
#include "base/vec.h"

struct vp_rotation_ops {
	/* Starts a recorder that writes to `path`. Errors: no process. */
	struct vp_error *(*start)(void *context, const char *path, pid_t *ret);
	/* Asks it to end, or kills it. */
	void (*stop)(void *context, pid_t recorder, bool kills);
	/* Whether it has ended; true once. */
	bool (*has_ended)(void *context, pid_t recorder);
	/* Whether the recording at `path` is being written. */
	bool (*is_recorded)(void *context, const char *path);
	/* Its size now. */
	uint64_t (*bytes)(void *context, const char *path);
	/* The path of a recording that begins at `realtime`, to be freed. */
	char *(*path)(void *context, uint64_t realtime);
};

struct vp_recorder {
	char *path;
	pid_t process;  /* 0: none */
	uint64_t since; /* when it was started or asked to end, CLOCK_MONOTONIC, ns */
};

struct vp_rotation {
	const struct vp_rotation_ops *ops;
	void *context;
	uint64_t rotate_ns, rotate_bytes;
	vp_notices *notices;
	struct vp_recorder open; /* whose recording is being written */
	struct vp_recorder next; /* is starting */
	VP_VEC(struct vp_recorder) ending;
	uint64_t retry_at;
	unsigned failures; /* in a row */
	bool is_due;       /* rotate at the next step */
};

enum { VP_ROTATION_START_S = 120, VP_ROTATION_END_S = 300, VP_ROTATION_RETRY_MAX_S = 60 };

/* Looks at all processes, and starts and stops what is due. */
void vp_rotation_step(struct vp_rotation *rotation, uint64_t now, uint64_t realtime);
/* Begins the next recording at the next step. */
void vp_rotation_ask(struct vp_rotation *rotation);
/* Asks all recorders to end. */
void vp_rotation_stop(struct vp_rotation *rotation, uint64_t now);
/* After that: whether all have ended. Kills those that take too long. */
bool vp_rotation_has_stopped(struct vp_rotation *rotation, uint64_t now);
void vp_rotation_deinit(struct vp_rotation *rotation);

#endif
