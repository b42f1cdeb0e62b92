/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options -p, -t and -C of 'vperf record': sample only these processes, threads and pCPUs. */
#ifndef VP_CMD_HOST_RECORD_TARGETS_H
#define VP_CMD_HOST_RECORD_TARGETS_H

#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/options.h"
#include "session/instrument_profile.h"

/* The running processes and threads of -p and -t. */
struct vp_target_ends {
	int epoll; /* readable when one has ended, created by vp_record_targets_ended(); 0: none */
	struct vp_profile_ids
	    unwatched;             /* threads that this kernel cannot watch; they are polled */
	struct vp_profile_ids fds; /* pidfds of the others */
	size_t running;
};

struct vp_record_targets {
	const char *pids, *tids, *cpus;
	/* Parsed options. */
	struct vp_profile_targets chosen;
	struct vp_target_ends ends;
};

#define VP_RECORD_TARGET_OPTIONS(targets)                                                          \
	{'p',                                                                                      \
	 "pid",                                                                                    \
	 VP_OPTION_TEXT,                                                                           \
	 &(targets)->pids,                                                                         \
	 "PIDS",                                                                                   \
	 "sample only these processes of the host, such as 120,340; a VM's is its VMM"},           \
	    {'t',                                                                                  \
	     "tid",                                                                                \
	     VP_OPTION_TEXT,                                                                       \
	     &(targets)->tids,                                                                     \
	     "TIDS",                                                                               \
	     "sample only these threads of the host; a vCPU's is its thread"},                     \
	{                                                                                          \
		'C', "cpu", VP_OPTION_TEXT, &(targets)->cpus, "LIST",                              \
		    "sample only these pCPUs, such as 0-3,8"                                       \
	}

/* Errors: not a number, a process or thread that is not running, a pCPU that is not online. */
struct vp_error *vp_record_targets_check(struct vp_record_targets *targets) VP_MUST_CHECK;
/* Whether all processes and threads of -p and -t have ended; false without any. */
bool vp_record_targets_ended(struct vp_record_targets *targets);
void vp_record_targets_deinit(struct vp_record_targets *targets);

#endif
