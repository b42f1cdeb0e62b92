/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of vperfd, and functions of its files. */
#ifndef VP_CMD_DAEMON_VPERFD_H
#define VP_CMD_DAEMON_VPERFD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyze/account/account.h"
#include "analyze/account/account_counters.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/notices.h"
#include "daemon/account_tail.h"
#include "daemon/daemon_config.h"
#include "daemon/push_queue.h"
#include "daemon/recent_hour.h"
#include "daemon/rotation.h"
#include "daemon/rules.h"
#include "export/process_cost.h"
#include "serve/http_server.h"
#include "store/history.h"
#include "store/retention.h"

/* A child process for a finding: `vperf snapshot`, or a recorder of samples. */
struct vperfd_job {
	pid_t process; /* 0: none */
	int output;    /* standard output of `vperf snapshot`, or -1 */
	char *path;    /* of its output */
};

struct vperfd {
	const char *config_path;
	struct vp_daemon_config config;
	char *program; /* path of vperf */
	int lock;
	struct vp_rotation rotation;
	vp_notices notices;
	vp_history history;
	uint64_t history_read;      /* time of the last scan; 0: not yet */
	uint64_t grown, bytes_then; /* largest growth between checks; size at the last check */
	bool said_full;
	struct vp_age_clock ages;
	char *boot;           /* vp_boot_id() */
	int64_t clock_offset; /* for vp_clock_jump() */
	/* Accounts of the last second, and since the last evaluation of the rules. */
	struct vp_account_tail tail;
	struct vp_account second, rules;
	bool has_second;
	uint64_t counted_at; /* time of the latest records of vCPUs */
	struct vp_account_counters counters;
	struct vp_hour hour;
	uint64_t rules_at; /* time of the next evaluation */
	vp_held_rules held;
	vp_fired_rules fired;
	uint64_t n_fired;
	struct vp_recorder flight;
	uint64_t flight_retry_at;
	struct vperfd_job snapshot, samples;
	struct vp_http_server *server;
	uint64_t serve_at; /* its process is not started again before that time */
	struct vp_push_queue pushes;
	uint64_t spooled, spool_dropped;
	struct vp_process_cost cost; /* as published last */
};

/* store_keeper.c: lists the store and enforces its limits. `now` is CLOCK_MONOTONIC. */
void vperfd_keep_store(struct vperfd *daemon, uint64_t now);
/* Makes the next check read the whole store again. */
void vperfd_reread_store(struct vperfd *daemon);

/* watch.c: reads the accounting, evaluates the rules, starts snapshots and samples. */
void vperfd_watch_begin(struct vperfd *daemon, uint64_t now);
void vperfd_watch(struct vperfd *daemon, uint64_t now);
void vperfd_watch_end(struct vperfd *daemon);
/* Sends the flight recorder and the recorder of samples a request to end. */
void vperfd_watch_stop(struct vperfd *daemon);
/* Whether they have ended, after vperfd_watch_stop(). */
bool vperfd_watch_has_stopped(struct vperfd *daemon);

/* closed.c: processes recordings that have ended. */
void vperfd_closed_begin(struct vperfd *daemon);
void vperfd_recording_closed(struct vperfd *daemon, const char *path);
void vperfd_closed_step(struct vperfd *daemon, uint64_t now);
void vperfd_closed_end(struct vperfd *daemon);

/* publish.c: the process that serves HTTP, and its documents. Checks the files that the
 * configuration names. */
struct vp_error *vperfd_check_files(const struct vperfd *daemon) VP_MUST_CHECK;
struct vp_error *vperfd_serve(struct vperfd *daemon) VP_MUST_CHECK;
/* Reads TLS and users again; an invalid configuration changes nothing. */
struct vp_error *vperfd_serve_again(struct vperfd *daemon) VP_MUST_CHECK;
/* Writes the documents that clients wait for. */
struct vp_error *vperfd_publish(struct vperfd *daemon) VP_MUST_CHECK;
/* Does so until that time, or until a signal. */
struct vp_error *vperfd_serve_until(struct vperfd *daemon, uint64_t time) VP_MUST_CHECK;

/* vperfd_main.c: number of pCPUs, with those that may come online. */
uint32_t vperfd_pcpus(void);
/* vperfd_main.c: prints a sentence, cleaned. */
void vperfd_say(const char *sentence);
#define VPERFD_SAY(...)                                                                            \
	do {                                                                                       \
		VP_AUTO_FREE char *vperfd_sentence = vp_format(__VA_ARGS__);                       \
		vperfd_say(vperfd_sentence);                                                       \
	} while (0)

#endif
