/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Child processes of vperfd: its recorders. They end with vperfd, even if it is killed. */
#ifndef VP_DAEMON_CHILD_H
#define VP_DAEMON_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/macros.h"
#include "daemon/daemon_config.h"

enum { VP_DAEMON_WORDS = 24, VP_DAEMON_WORD = 64 };

/* A command line; generated words are in `room`. */
struct vp_daemon_words {
	const char *at[VP_DAEMON_WORDS]; /* NULL-terminated */
	size_t count, used;
	char room[VP_DAEMON_WORDS][VP_DAEMON_WORD];
};

/* Command lines of `program` (vperf), which must outlive them, as must `path`: the permanent
 * recorder, the flight recorder, samples for a finding. `pcpus`: number of pCPUs, which their
 * buffers share. */
void vp_daemon_record_words(const struct vp_daemon_config *config, const char *program,
			    const char *path, uint32_t pcpus, struct vp_daemon_words *ret);
void vp_daemon_flight_words(const struct vp_daemon_config *config, const char *program,
			    const char *path, uint32_t pcpus, struct vp_daemon_words *ret);
void vp_daemon_samples_words(const struct vp_daemon_config *config, const char *program,
			     const char *path, uint32_t pcpus, struct vp_daemon_words *ret);
/* … a snapshot of the flight recorder in directory `path`; prints the snapshot's path. */
void vp_daemon_snapshot_words(const char *program, const char *path, struct vp_daemon_words *ret);

struct vp_push;
/* `pusher` (vperf-push) sends that profile. */
void vp_daemon_push_words(const struct vp_daemon_config *config, const char *pusher,
			  const char *program, const struct vp_push *push,
			  struct vp_daemon_words *ret);

/* Runs it; `output` becomes its standard output, or -1: /dev/null. Errors: there is no such
 * program, no process. */
struct vp_error *vp_child_start(const struct vp_daemon_words *words, int output,
				pid_t *ret) VP_MUST_CHECK;
/* Whether it has ended; returns true only once. Sets `failed`, or NULL, if it was killed by a
 * signal other than SIGTERM, or its exit status is not 0. */
bool vp_child_has_ended(pid_t child, bool *failed);

#endif
