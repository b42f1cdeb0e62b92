/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording in progress: directory, machines, VMs and clocks, and any set of instruments
 * (instrument.h). All instruments share the clock, the guest watch and the recording. */
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

/* Flight recorder: records stay in memory, where the oldest are overwritten, until a snapshot. */
struct vp_flight_options {
	size_t bytes;                     /* size of the memory */
	struct vp_conditions conditions;  /* triggers of snapshots */
	uint64_t after_ns;                /* delay after the trigger */
	uint64_t every_ns;                /* minimum time between triggered snapshots */
	struct vp_snapshot_limits limits; /* limits of triggered snapshots */
};

struct vp_session_options {
	const struct vp_flight_options *flight; /* NULL: records are written to disk at once */
	const char *directory;
	const char *command;         /* the recorded command line, or NULL */
	unsigned compression;        /* zstd level; 0: not compressed */
	const char *const *vm_names; /* only the guests of these VMs; all if n_vm_names is 0 */
	size_t n_vm_names;
	/* Symbol maps for addresses that instruments recorded: */
	bool with_symbols; /* including symbols of files */
	/* Maximum time between writes of names; 0: only at the end. */
	uint64_t names_ns;
	bool ask_agents; /* also request guests' mapped files from agents */
	unsigned agent_port;
	unsigned agent_seconds; /* time limit of an agent's whole reply */
	size_t agent_bytes;     /* size limit of an agent's reply */
	bool quiet_vms;         /* no notices of VMs that start or stop, and of their kernels */
	/* Called before each step that may take seconds; may be NULL. only_agents_left: the
	 * recording is complete except for agents' replies. */
	void (*progress)(const char *what, bool only_agents_left);
};

/* Objects in `options` must outlive the session. */
struct vp_session *vp_session_new(const struct vp_session_options *options);
/* Adds an instrument, taking it over; before vp_session_open(). */
void vp_session_add(struct vp_session *session, struct vp_instrument *instrument);
/* Claims the directory, finds the VMs, loads the BPF programs. Nothing is recorded yet. Errors: no
 * permission, missing kernel features, unusable directory. */
struct vp_error *vp_session_open(struct vp_session *session) VP_MUST_CHECK;
/* Starts every instrument. */
struct vp_error *vp_session_start(struct vp_session *session) VP_MUST_CHECK;
/*
 * Confirms that the recording is good so far: its directory gets its final name, and an older one
 * of that name is renamed. Until then, vp_session_free() removes everything from the disk. Errors:
 * not writable; the name is now in use.
 */
struct vp_error *vp_session_publish(struct vp_session *session) VP_MUST_CHECK;
/* Makes vp_session_step() return also when `fd` is readable. */
void vp_session_wake_on(struct vp_session *session, int fd);
/* Waits up to `timeout_ms` for records and writes the available ones. */
struct vp_error *vp_session_step(struct vp_session *session, int timeout_ms) VP_MUST_CHECK;
/* Stops recording and writes the rest: records, end, names, agents' replies. An error does not stop
 * the other steps; the first one is returned. */
struct vp_error *vp_session_finish(struct vp_session *session) VP_MUST_CHECK;
/* For a flight recorder: writes the memory as a recording next to the session's directory, with
 * `cause`. *ret is its path, to be freed. Errors: not writable. */
struct vp_error *vp_session_snapshot(struct vp_session *session,
				     const struct vp_snapshot_cause *cause,
				     char **ret) VP_MUST_CHECK;
/* Progress so far ("12 samples, 3 intervals, 0 lost, 1 VM"), to be freed. */
char *vp_session_totals(const struct vp_session *session) VP_MUST_CHECK;
/* Whether a VM ran during the recording. */
bool vp_session_had_vms(const struct vp_session *session);
/* The next warning about lost or missing data, or NULL; each is returned once. */
char *vp_session_take_notice(struct vp_session *session);
void vp_session_free(struct vp_session *session);

#endif
