/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A child process that communicates with a guest's agent. It drops all rights before it reads the
 * first byte, and reports by packets over a channel, which are as untrusted as the agent. */
#ifndef VP_COLLECT_AGENT_AGENT_WORKER_H
#define VP_COLLECT_AGENT_AGENT_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/worker_process.h"
#include "collect/agent/agent_client.h"

/* First member of every kind of worker; the child has its own copy. */
struct vp_agent_worker {
	struct vp_agent_address address;
	const char *name; /* of the guest, in messages */
	int fd;           /* the connection; -1: the worker connects */
	unsigned tries;   /* attempts to connect; 0: no limit */
	int channel;      /* for the packets */
	/* Runs after connecting, with all rights. NULL: nothing to do. */
	struct vp_error *(*prepare)(struct vp_agent_worker *worker);
	/* Runs confined: communicates with the agent until an error. */
	struct vp_error *(*run)(struct vp_agent_worker *worker);
	/* Sends a packet that the agent is absent, temporarily or for good. Frees the error. */
	void (*send_error)(struct vp_agent_worker *worker, bool is_gone, struct vp_error *error);
};

struct vp_error *vp_agent_worker_start(struct vp_agent_worker *worker,
				       struct vp_worker_process *ret) VP_MUST_CHECK;

/* For the child: sends a packet; exits if the parent is gone. */
void vp_agent_worker_send(const struct vp_agent_worker *worker, const void *packet, size_t size);
/* For the child: writes to the agent. */
struct vp_error *vp_agent_worker_write(const struct vp_agent_worker *worker, const void *bytes,
				       size_t size) VP_MUST_CHECK;

/* For the parent: replaces the reason by that of a packet, which may be the guest's text, made
 * printable; without a packet, by the worker's death. */
void vp_agent_worker_reason(char **reason, const char *text, size_t room);
void vp_agent_worker_died(char **reason);

#endif
