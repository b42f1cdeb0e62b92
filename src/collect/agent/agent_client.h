/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fetches the symbol map from the agent of a guest (protocol/agent_protocol.h). The guest is
 * hostile: bytes are only stored here, within limits, for an unprivileged reader.
 */
#ifndef VP_COLLECT_AGENT_AGENT_CLIENT_H
#define VP_COLLECT_AGENT_AGENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/vm.h"

/* Where an agent listens. */
struct vp_agent_address {
	unsigned cid;     /* of the guest's vsock device, 0: … */
	const char *path; /* … it is the VMM's unix socket (vsock_path.h), or NULL */
	uint32_t pid;     /* of the VMM */
	unsigned port;    /* 0: the usual one */
};

/* That of a VM; what it points to is the VM's. */
struct vp_agent_address vp_agent_address_of(const struct vp_vm *vm, unsigned port);
/* Whether it can be asked at all. */
bool vp_agent_is_addressed(const struct vp_agent_address *address);
/* The guest's name in messages; a new string. */
char *vp_agent_address_name(const struct vp_agent_address *address) VP_MUST_CHECK;

struct vp_agent_limits {
	size_t bytes;           /* longest answer; 0: 1 GiB */
	unsigned seconds_idle;  /* without a byte; 0: 10 */
	unsigned seconds_total; /* 0: 120 */
	bool no_symbols;
};

struct vp_agent_result {
	size_t bytes;   /* stored at path_out; 0: nothing is, and there is no such file */
	bool truncated; /* the answer did not come to its end: see the error */
};

/* The vsock port of an option: 0 is the usual one. */
unsigned vp_agent_port_used(unsigned port);
/*
 * The same with `tries` retries (0: no limit), at growing intervals from a few seconds on: a guest
 * that was just started has no agent yet. absent() receives, and frees, each error but the last.
 */
struct vp_error *vp_agent_await(const struct vp_agent_address *address, unsigned tries,
				void (*absent)(void *context, struct vp_error *error),
				void *context, int *ret) VP_MUST_CHECK;
/*
 * Asks the agent and stores its answer at `path_out`. An agent that does not reply or is busy is
 * asked again until limits->seconds_total have passed. Errors: no agent there, it stopped or hung
 * or sent too much; the received part is stored, and result has its size. A refusal is not stored,
 * nor what is not a symbol map.
 */
struct vp_error *vp_agent_fetch(const struct vp_agent_address *address, const char *path_out,
				const struct vp_agent_limits *limits,
				struct vp_agent_result *result) VP_MUST_CHECK;
/* The same over a connected stream socket; `name` is what sentences call the guest. */
struct vp_error *vp_agent_fetch_from(int fd, const char *name, const char *path_out,
				     const struct vp_agent_limits *limits,
				     struct vp_agent_result *result) VP_MUST_CHECK;

#endif
