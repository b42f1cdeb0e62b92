/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording being made: the directory, the machines, VMs and clocks on one side, any set of
 * instruments (instrument.h) on the other. They share one clock, one watch over the guests and one
 * recording.
 */
#ifndef VP_SESSION_SESSION_H
#define VP_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/condition.h"
#include "schema/snapshot_cause.h"
#include "session/snapshot_limits.h"

struct vp_session;
struct vp_instrument;

/* Records stay in memory, where the oldest are overwritten, until somebody asks for them. */
struct vp_flight_options {
	size_t bytes;                     /* of memory */
	struct vp_conditions conditions;  /* on which a snapshot is taken */
	uint64_t after_ns;                /* delay after the trigger */
	uint64_t every_ns;                /* not sooner again */
	struct vp_snapshot_limits limits; /* of these snapshots */
};

struct vp_session_options {
	const struct vp_flight_options *flight; /* NULL: records are written as they come */
	const char *directory;
	const char *command;         /* for the record, or NULL */
	unsigned compression;        /* zstd's level; 0: streams are not compressed */
	const char *const *vm_names; /* only these VMs' guests; all if n_vm_names is 0 */
	size_t n_vm_names;
	/* Names for what instruments found at addresses: */
	bool with_symbols; /* those of files, too */
	bool ask_agents;   /* what guests have mapped where */
	unsigned agent_port;
	unsigned agent_seconds; /* for one agent's whole answer */
	size_t agent_bytes;     /* of one agent's answer at most */
	/* Called before each thing that may take seconds; may be NULL. When only agents are left,
	 * the recording is complete but for their answers. */
	void (*progress)(const char *what, bool only_agents_left);
};

/* Objects that `options` points to must outlive the session. */
struct vp_session *vp_session_new(const struct vp_session_options *options);
/* Adds the instrument to the recording: before vp_session_open(). The session takes it over. */
void vp_session_add(struct vp_session *session, struct vp_instrument *instrument);
/* Claims the directory, finds the VMs, loads the BPF programs. Nothing is recorded yet. Errors: no
 * permission, a kernel without what an instrument needs, a directory that cannot be used. */
struct vp_error *vp_session_open(struct vp_session *session) VP_MUST_CHECK;
/* Starts every instrument. */
struct vp_error *vp_session_start(struct vp_session *session) VP_MUST_CHECK;
/* Confirms that the recording is good so far: its directory gets the name of the options, and an
 * older one of that name is moved away. Before that, vp_session_free() leaves nothing on disk.
 * Errors: nothing can be written; the name is taken by now. */
struct vp_error *vp_session_publish(struct vp_session *session) VP_MUST_CHECK;
/* vp_session_step() also returns when `fd` is readable. */
void vp_session_wake_on(struct vp_session *session, int fd);
/* Waits up to `timeout_ms` for records and writes what there is. */
struct vp_error *vp_session_step(struct vp_session *session, int timeout_ms) VP_MUST_CHECK;
/* Stops and writes the rest: records, the end, names, agents' replies. An error does not stop the
 * other steps; the first one is returned. */
struct vp_error *vp_session_finish(struct vp_session *session) VP_MUST_CHECK;
/* For a flight recorder: writes its memory as a recording of its own, next to the session's
 * directory, with `cause`. *ret is its path, to be freed. Errors: it cannot be written. */
struct vp_error *vp_session_snapshot(struct vp_session *session,
				     const struct vp_snapshot_cause *cause,
				     char **ret) VP_MUST_CHECK;
/* Progress so far ("12 samples, 3 intervals, 0 lost, 1 VM"), to be freed. */
char *vp_session_totals(const struct vp_session *session) VP_MUST_CHECK;
/* A sentence about something that was lost or is missing, or NULL; each is handed out once. */
char *vp_session_take_notice(struct vp_session *session);
void vp_session_free(struct vp_session *session);

#endif
