/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fetches the symbol map from a guest's agent (protocol/agent_protocol.h). The guest is untrusted:
 * bytes are only stored, within limits, for an unprivileged parser. */
#ifndef VP_COLLECT_AGENT_AGENT_CLIENT_H
#define VP_COLLECT_AGENT_AGENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/vm.h"

/* Address of an agent. */
struct vp_agent_address {
	unsigned cid;     /* CID of the guest's vsock device; 0: … */
	const char *path; /* … the VMM's unix socket (vsock_path.h), or NULL: … */
	uint32_t domain;  /* … the guest of Xen that offers a vchan; 0: none */
	uint32_t pid;     /* of the VMM */
	unsigned port;    /* of vsock, or the offer's number; 0: the default */
};

/* The address of a VM's agent; its strings belong to the VM. */
struct vp_agent_address vp_agent_address_of(const struct vp_vm *vm, unsigned port);
/* Whether the VM has any address. */
bool vp_agent_is_addressed(const struct vp_agent_address *address);
/* The guest's name in messages; a new string. */
char *vp_agent_address_name(const struct vp_agent_address *address) VP_MUST_CHECK;

struct vp_agent_limits {
	size_t bytes;           /* maximum size of a reply; 0: 1 GiB */
	unsigned seconds_idle;  /* timeout without any data; 0: 10 */
	unsigned seconds_total; /* 0: 120 */
	bool no_symbols;
};

struct vp_agent_result {
	size_t bytes;   /* size of the file at path_out; 0: no file */
	bool truncated; /* the reply is incomplete: see the error */
};

/* The vsock port of an option; 0 is the default. */
unsigned vp_agent_port_used(unsigned port);
/* The same as an outcome has it: 0 over a vchan. */
uint32_t vp_agent_port_shown(unsigned port, bool is_vchan);
/*
 * The same with `tries` attempts (0: no limit), at growing intervals from a few seconds: a guest
 * that has just started has no agent yet. absent() receives, and frees, each error except the last.
 */
struct vp_error *vp_agent_await(const struct vp_agent_address *address, unsigned tries,
				void (*absent)(void *context, struct vp_error *error),
				void *context, int *ret) VP_MUST_CHECK;
/*
 * Requests the symbol map and stores it at `path_out`. An agent that does not reply or is busy is
 * asked again until limits->seconds_total have passed. Errors: no agent; it stopped, hung or sent
 * too much; the received part is stored, and `result` has its size. Refusals, and replies that are
 * not a symbol map, are not stored.
 */
struct vp_error *vp_agent_fetch(const struct vp_agent_address *address, const char *path_out,
				const struct vp_agent_limits *limits,
				struct vp_agent_result *result) VP_MUST_CHECK;
/* The same over a connected stream socket; `name`: the guest in messages. */
struct vp_error *vp_agent_fetch_from(int fd, const char *name, const char *path_out,
				     const struct vp_agent_limits *limits,
				     struct vp_agent_result *result) VP_MUST_CHECK;

#endif
