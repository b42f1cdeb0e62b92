/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A child process for untrusted input; it ends with its parent. */
#ifndef VP_BASE_WORKER_PROCESS_H
#define VP_BASE_WORKER_PROCESS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_worker_process {
	pid_t process;
	int channel; /* our end of the socket pair */
};

/*
 * Calls work(context, channel) in a new process, which exits when that returns. `type` of the
 * socket pair: SOCK_STREAM or SOCK_SEQPACKET. The worker ignores the signals that a terminal sends
 * to end a recording. It has the rights of this process until it drops them (vp_confine()).
 */
struct vp_error *vp_worker_process_start(int type, void (*work)(void *context, int channel),
					 void *context,
					 struct vp_worker_process *ret) VP_MUST_CHECK;
/* Kills the worker and waits for it. */
void vp_worker_process_end(struct vp_worker_process *worker);

#endif
