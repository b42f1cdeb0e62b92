/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a guest's agent count events in memory that the host can read (protocol/counts_protocol.h).
 * A child process communicates with the agent while counts are needed; it drops all rights before
 * it reads the agent's messages, and its output is untrusted.
 */
#ifndef VP_COLLECT_AGENT_COUNTS_CLIENT_H
#define VP_COLLECT_AGENT_COUNTS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "collect/agent/agent_client.h"
#include "protocol/counts_protocol.h"
#include "protocol/lend_protocol.h"
#include "schema/interval.h"

struct vp_agent_counts;

/* VP_AGENT_ABSENT: no agent yet; retried. */
enum vp_agent_counts_state { VP_AGENT_ASKED, VP_AGENT_ABSENT, VP_AGENT_COUNTING, VP_AGENT_GONE };

struct vp_agent_count_cell {
	uint32_t vcpu;
	enum vp_guest_count event;
	uint64_t gpa; /* of the 8-byte count */
};

struct vp_agent_cell {
	uint32_t vcpu;
	uint64_t gpa; /* of a struct vp_lent_cell */
};

struct vp_agent_memory {
	uint64_t marker,
	    marker_gpa; /* the addresses are valid while that number is at marker_gpa */
	VP_VEC(struct vp_agent_count_cell) counts;
	uint32_t without;                   /* bits of events that the agent cannot count */
	VP_VEC(struct vp_agent_cell) cells; /* cells of host-provided counters */
};

/* Requests events (bits of enum vp_guest_count). */
struct vp_error *vp_agent_counts_start(const struct vp_agent_address *address, uint32_t events,
				       struct vp_agent_counts **ret) VP_MUST_CHECK;
/* Requests cells for host-provided counters (protocol/lend_protocol.h); the marker is chosen
 * here. */
struct vp_error *vp_agent_lend_start(const struct vp_agent_address *address,
				     const struct vp_lend_request *request,
				     struct vp_agent_counts **ret) VP_MUST_CHECK;
/* vp_agent_counts_start() over a connected stream socket, which it takes over. */
struct vp_error *vp_agent_counts_start_from(int fd, const char *name, uint32_t events,
					    struct vp_agent_counts **ret) VP_MUST_CHECK;
/* Ends the connection, and thereby the agent's counting. */
void vp_agent_counts_free(struct vp_agent_counts *counts);
/* Receives updates; waits for the first one until the timeout. */
enum vp_agent_counts_state vp_agent_counts_poll(struct vp_agent_counts *counts, int timeout_ms);
/* The addresses, in state counting. */
const struct vp_agent_memory *vp_agent_counts_memory(const struct vp_agent_counts *counts);
/* Why the agent is absent or gone: printable, but possibly the guest's text. */
const char *vp_agent_counts_problem(const struct vp_agent_counts *counts);

#endif
