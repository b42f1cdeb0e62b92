/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child process that talks to the agent of a guest. It drops all rights before it reads the first
 * byte, and reports by packets over a channel; these are as untrusted as the agent.
 */
#ifndef VP_COLLECT_AGENT_AGENT_WORKER_H
#define VP_COLLECT_AGENT_AGENT_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/worker_process.h"
#include "collect/agent/agent_client.h"

/* The first member of a worker of one kind; it is the child's, which has a copy. */
struct vp_agent_worker {
	struct vp_agent_address address;
	const char *name; /* of the guest, in messages */
	int fd;           /* the connection; -1: the worker connects */
	unsigned tries;   /* of connecting; 0: without an end */
	int channel;      /* of the packets */
	/* Once connected, with all rights. NULL: nothing is to be done. */
	struct vp_error *(*prepare)(struct vp_agent_worker *worker);
	/* Confined: talks to the agent until there is an error. */
	struct vp_error *(*run)(struct vp_agent_worker *worker);
	/* Sends the packet that the agent is absent, for good or up to now. Frees the error. */
	void (*send_error)(struct vp_agent_worker *worker, bool is_gone, struct vp_error *error);
};

struct vp_error *vp_agent_worker_start(struct vp_agent_worker *worker,
				       struct vp_worker_process *ret) VP_MUST_CHECK;

/* For the child: sends a packet, or exits if there is no receiver. */
void vp_agent_worker_send(const struct vp_agent_worker *worker, const void *packet, size_t size);
/* For the child: writes to the agent. */
struct vp_error *vp_agent_worker_write(const struct vp_agent_worker *worker, const void *bytes,
				       size_t size) VP_MUST_CHECK;

/* For the parent: replaces the reason that a packet has, which may be the guest's own words, by a
 * printable one; without a packet, the worker has died. */
void vp_agent_worker_reason(char **reason, const char *text, size_t room);
void vp_agent_worker_died(char **reason);

#endif
