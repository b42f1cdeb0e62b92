/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/rotation.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define SECOND 1000000000ULL

#define NOTICE(rotation, ...) vp_vec_push((rotation)->notices, vp_format(__VA_ARGS__))

static void rotation_forget(struct vp_recorder *recorder)
{
	free(recorder->path);
	*recorder = (struct vp_recorder){0};
}

/* Retries after one second, then after twice the previous delay. */
static void rotation_fail(struct vp_rotation *rotation, uint64_t now)
{
	uint64_t wait = 1ULL << (rotation->failures < 16 ? rotation->failures : 16);

	rotation->failures++;
	rotation->retry_at =
	    now + SECOND * (wait < VP_ROTATION_RETRY_MAX_S ? wait : VP_ROTATION_RETRY_MAX_S);
}

#define LACKS_END "the recorder of '%s' exited unexpectedly: the recording lacks its end"

/* Reports a recording as closed; a recorder that never started recording left none. */
static void rotation_close(struct vp_rotation *rotation, const struct vp_recorder *recorder)
{
	if (rotation->ops->closed && rotation->ops->is_recorded(rotation->context, recorder->path))
		rotation->ops->closed(rotation->context, recorder->path);
}

static void rotation_start(struct vp_rotation *rotation, uint64_t now, uint64_t realtime)
{
	struct vp_recorder *next = &rotation->next;

	next->path = rotation->ops->path(rotation->context, realtime);
	next->since = now;
	VP_AUTO_ERROR struct vp_error *error =
	    rotation->ops->start(rotation->context, next->path, &next->process);
	if (!error)
		return;
	NOTICE(rotation, "cannot start a recorder: %s", vp_error_message(error));
	rotation_forget(next);
	rotation_fail(rotation, now);
}

static void rotation_end(struct vp_rotation *rotation, struct vp_recorder *recorder, uint64_t now)
{
	rotation->ops->stop(rotation->context, recorder->process, false);
	recorder->since = now;
	vp_vec_push(&rotation->ending, *recorder);
	*recorder = (struct vp_recorder){0};
}

static void reap_ending(struct vp_rotation *rotation, uint64_t now)
{
	size_t kept = 0;

	vp_vec_each (&rotation->ending, recorder) {
		bool failed = false;
		if (rotation->ops->has_ended(rotation->context, recorder->process, &failed)) {
			if (failed && !recorder->is_killed)
				NOTICE(rotation, LACKS_END, recorder->path);
			rotation_close(rotation, recorder);
			rotation_forget(recorder);
			continue;
		}
		if (now - recorder->since > VP_ROTATION_END_S * SECOND) {
			NOTICE(rotation, "the recorder of '%s' did not exit in time: killed",
			       recorder->path);
			rotation->ops->stop(rotation->context, recorder->process, true);
			recorder->is_killed = true;
			recorder->since = now;
		}
		rotation->ending.at[kept++] = *recorder;
	}
	rotation->ending.count = kept;
}

static void reap_open(struct vp_rotation *rotation, uint64_t now)
{
	struct vp_recorder *open = &rotation->open;
	bool failed;

	if (!open->process || !rotation->ops->has_ended(rotation->context, open->process, &failed))
		return;
	NOTICE(rotation, "the recorder of '%s' exited unexpectedly: the next one is started",
	       open->path);
	rotation_close(rotation, open);
	rotation_forget(open);
	if (!rotation->next.process)
		rotation->retry_at = now;
}

/* The next recorder has exited, maybe after its recording began. */
static void reap_next(struct vp_rotation *rotation, uint64_t now)
{
	struct vp_recorder *next = &rotation->next;

	if (rotation->ops->is_recorded(rotation->context, next->path))
		NOTICE(rotation, LACKS_END, next->path);
	else
		NOTICE(rotation, "the recorder of '%s' exited before it recorded", next->path);
	rotation_close(rotation, next);
	rotation_forget(next);
	rotation_fail(rotation, now);
}

/* Makes the next recorder the open one as soon as it records. */
static void watch_next(struct vp_rotation *rotation, uint64_t now)
{
	struct vp_recorder *next = &rotation->next;
	bool failed;

	if (!next->process)
		return;
	if (rotation->ops->has_ended(rotation->context, next->process, &failed)) {
		reap_next(rotation, now);
	} else if (rotation->ops->is_recorded(rotation->context, next->path)) {
		if (rotation->open.process)
			rotation_end(rotation, &rotation->open, now);
		rotation->open = *next;
		rotation->open.since = now;
		*next = (struct vp_recorder){0};
		rotation->failures = 0;
	} else if (now - next->since > VP_ROTATION_START_S * SECOND) {
		NOTICE(rotation, "the recorder of '%s' did not start in time: killed", next->path);
		rotation->ops->stop(rotation->context, next->process, true);
		next->is_killed = true;
		rotation_end(rotation, next, now);
		rotation_fail(rotation, now);
	}
}

static bool rotation_is_due(const struct vp_rotation *rotation, uint64_t now)
{
	const struct vp_recorder *open = &rotation->open;

	return !open->process || rotation->is_due ||
	       now - open->since + rotation->early_ns >= rotation->rotate_ns ||
	       rotation->ops->bytes(rotation->context, open->path) >= rotation->rotate_bytes;
}

void vp_rotation_step(struct vp_rotation *rotation, uint64_t now, uint64_t realtime)
{
	reap_ending(rotation, now);
	reap_open(rotation, now);
	watch_next(rotation, now);
	if (rotation->next.process || now < rotation->retry_at || !rotation_is_due(rotation, now))
		return;
	rotation->is_due = false;
	if (rotation->open.process)
		rotation->early_ns = 0;
	rotation_start(rotation, now, realtime);
}

void vp_rotation_ask(struct vp_rotation *rotation)
{
	rotation->is_due = true;
}

void vp_rotation_stop(struct vp_rotation *rotation, uint64_t now)
{
	if (rotation->next.process)
		rotation_end(rotation, &rotation->next, now);
	if (rotation->open.process)
		rotation_end(rotation, &rotation->open, now);
}

bool vp_rotation_has_stopped(struct vp_rotation *rotation, uint64_t now)
{
	reap_ending(rotation, now);
	return !rotation->ending.count;
}

void vp_rotation_deinit(struct vp_rotation *rotation)
{
	rotation_forget(&rotation->open);
	rotation_forget(&rotation->next);
	vp_vec_each (&rotation->ending, recorder)
		free(recorder->path);
	vp_vec_deinit(&rotation->ending);
}
