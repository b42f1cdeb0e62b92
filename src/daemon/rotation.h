/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rotation of recordings: each is made by a recorder process. The next one is started before the
 * present one is asked to end, so that no time is lost. A recorder that exits is restarted, with
 * growing delays if it fails repeatedly. Clock and processes are abstracted (rotation_ops).
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
	/* Starts a recorder that writes to `path`. Errors: fork failed. */
	struct vp_error *(*start)(void *context, const char *path, pid_t *ret);
	/* Asks it to end, or kills it. */
	void (*stop)(void *context, pid_t recorder, bool kills);
	/* Whether it has ended; returns true only once. Sets `failed` if it was killed or reports
	 * an error. */
	bool (*has_ended)(void *context, pid_t recorder, bool *failed);
	/* Whether the recording at `path` is in progress. */
	bool (*is_recorded)(void *context, const char *path);
	/* Present size of the recording. */
	uint64_t (*bytes)(void *context, const char *path);
	/* The path of a recording that starts at `realtime`, to be freed. */
	char *(*path)(void *context, uint64_t realtime);
	/* The recorder of `path` has ended; or NULL. */
	void (*closed)(void *context, const char *path);
};

struct vp_recorder {
	char *path;
	pid_t process;  /* 0: no process */
	uint64_t since; /* time of the start, or of the request to end, CLOCK_MONOTONIC, ns */
	bool is_killed; /* by this rotation: reported already */
};

struct vp_rotation {
	const struct vp_rotation_ops *ops;
	void *context;
	uint64_t rotate_ns, rotate_bytes;
	uint64_t early_ns; /* shortens the first recording: hosts rotate at different times */
	vp_notices *notices;
	struct vp_recorder open; /* the recorder whose recording is in progress */
	struct vp_recorder next; /* the recorder that is starting */
	VP_VEC(struct vp_recorder) ending;
	uint64_t retry_at;
	unsigned failures; /* consecutive failures */
	bool is_due;       /* rotate at the next step */
};

enum { VP_ROTATION_START_S = 120, VP_ROTATION_END_S = 300, VP_ROTATION_RETRY_MAX_S = 60 };

/* Checks all processes; starts and stops recorders that are due. */
void vp_rotation_step(struct vp_rotation *rotation, uint64_t now, uint64_t realtime);
/* Starts the next recording at the next step. */
void vp_rotation_ask(struct vp_rotation *rotation);
/* Asks all recorders to end. */
void vp_rotation_stop(struct vp_rotation *rotation, uint64_t now);
/* Afterwards: whether all have ended. Kills those that take too long. */
bool vp_rotation_has_stopped(struct vp_rotation *rotation, uint64_t now);
void vp_rotation_deinit(struct vp_rotation *rotation);

#endif
