/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/worker_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

/* Ends at once if the parent is gone already. */
static void follow_parent(pid_t parent)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

struct vp_error *vp_worker_process_start(int type, void (*work)(void *context, int channel),
					 void *context, struct vp_worker_process *ret)
{
	const pid_t parent = getpid();
	int channels[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, channels))
		return vp_error_errno(errno, "cannot make a socket pair");
	pid_t process = fork();
	if (process == 0) {
		follow_parent(parent);
		work(context, channels[1]);
		_exit(0);
	}
	int failure = errno;
	close(channels[1]);
	if (process < 0) {
		close(channels[0]);
		return vp_error_errno(failure, "cannot start a process");
	}
	*ret = (struct vp_worker_process){.process = process, .channel = channels[0]};
	return NULL;
}

void vp_worker_process_end(struct vp_worker_process *worker)
{
	close(worker->channel);
	kill(worker->process, SIGKILL);
	vp_waitpid(worker->process, NULL, 0);
}
