/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/agent/agent_worker.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/confine.h"
#include "base/file.h"
#include "base/io.h"

void vp_agent_worker_send(const struct vp_agent_worker *worker, const void *packet, size_t size)
{
	/* packets are sent completely or not at all */
	if (vp_write(worker->channel, packet, size) != (ssize_t)size)
		_exit(1);
}

struct vp_error *vp_agent_worker_write(const struct vp_agent_worker *worker, const void *bytes,
				       size_t size)
{
	int result = vp_fd_write_all(worker->fd, bytes, size);

	return result ? vp_error_errno(-result, "the agent of %s does not respond", worker->name)
		      : NULL;
}

static void send_absent(void *context, struct vp_error *error)
{
	struct vp_agent_worker *worker = context;

	worker->send_error(worker, false, error);
}

/* Connects, with retries until an agent accepts or retrying is useless, unless a connection was
 * given. */
static void connect_agent(struct vp_agent_worker *worker)
{
	if (worker->fd >= 0)
		return;
	struct vp_error *error =
	    vp_agent_await(&worker->address, worker->tries, send_absent, worker, &worker->fd);

	if (!error)
		return;
	worker->send_error(worker, true, error);
	_exit(0);
}

static struct vp_error *agent_worker_confine(struct vp_agent_worker *worker)
{
	int keep[] = {worker->fd, worker->channel};

	VP_TRY(vp_confine(keep, VP_ARRAY_SIZE(keep), 0, 0));
	worker->fd = keep[0];
	worker->channel = keep[1];
	return NULL;
}

static void agent_worker_run(void *context, int channel)
{
	struct vp_agent_worker *worker = context;

	worker->channel = channel;
	connect_agent(worker);
	struct vp_error *error = worker->prepare ? worker->prepare(worker) : NULL;
	if (!error)
		error = agent_worker_confine(worker);
	if (!error)
		error = worker->run(worker);
	worker->send_error(worker, true, error);
}

struct vp_error *vp_agent_worker_start(struct vp_agent_worker *worker,
				       struct vp_worker_process *ret)
{
	return vp_worker_process_start(SOCK_SEQPACKET, agent_worker_run, worker, ret);
}

void vp_agent_worker_reason(char **reason, const char *text, size_t room)
{
	free(*reason);
	*reason = vp_strndup(text, strnlen(text, room));
	for (char *c = *reason; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

void vp_agent_worker_died(char **reason)
{
	static const char died[] = "the agent client process has died";

	vp_agent_worker_reason(reason, died, sizeof(died));
}
