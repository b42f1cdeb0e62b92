/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A child process for untrusted input: it does one thing, and ends with its parent. */
#ifndef VP_BASE_WORKER_PROCESS_H
#define VP_BASE_WORKER_PROCESS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_worker_process {
	pid_t process;
	int channel; /* its other end has the worker */
};

/*
 * Calls work(context, channel) in a new process, which exits when that returns. `type` of the
 * socket pair between both: SOCK_STREAM or SOCK_SEQPACKET. Signals that end a recording from the
 * terminal go to all processes: the worker ignores them. It has the rights of this process until
 * it gives them up (vp_confine()).
 */
struct vp_error *vp_worker_process_start(int type, void (*work)(void *context, int channel),
					 void *context,
					 struct vp_worker_process *ret) VP_MUST_CHECK;
/* Ends it, whatever it does. */
void vp_worker_process_end(struct vp_worker_process *worker);

#endif
