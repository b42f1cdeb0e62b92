/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the agent of a guest count events where the host can read them
 * (protocol/counts_protocol.h). A child process talks to the agent for as long as the counts are
 * wanted; it drops all rights before it reads the agent's messages, and its output is untrusted. */
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

/* Absent: the guest has no agent yet; retried. */
enum vp_agent_counts_state { VP_AGENT_ASKED, VP_AGENT_ABSENT, VP_AGENT_COUNTING, VP_AGENT_GONE };

struct vp_agent_count_cell {
	uint32_t vcpu;
	enum vp_guest_count event;
	uint64_t gpa; /* of 8 bytes */
};

struct vp_agent_cell {
	uint32_t vcpu;
	uint64_t gpa; /* of a struct vp_lent_cell */
};

struct vp_agent_memory {
	uint64_t marker, marker_gpa; /* the addresses are good while that number is there */
	VP_VEC(struct vp_agent_count_cell) counts;
	uint32_t without;                   /* bits of events that it cannot count */
	VP_VEC(struct vp_agent_cell) cells; /* of lent counters */
};

/* Asks for events (bits of enum vp_guest_count). */
struct vp_error *vp_agent_counts_start(const struct vp_agent_address *address, uint32_t events,
				       struct vp_agent_counts **ret) VP_MUST_CHECK;
/* Asks for cells to lend counters in (protocol/lend_protocol.h); the request's marker is chosen
 * here. */
struct vp_error *vp_agent_lend_start(const struct vp_agent_address *address,
				     const struct vp_lend_request *request,
				     struct vp_agent_counts **ret) VP_MUST_CHECK;
/* The first over a connected stream socket, which it takes. */
struct vp_error *vp_agent_counts_start_from(int fd, const char *name, uint32_t events,
					    struct vp_agent_counts **ret) VP_MUST_CHECK;
/* Ends it, and so the agent's counting. */
void vp_agent_counts_free(struct vp_agent_counts *counts);
/* Receives updates; waits for the first until the timeout. */
enum vp_agent_counts_state vp_agent_counts_poll(struct vp_agent_counts *counts, int timeout_ms);
/* Once it counts. */
const struct vp_agent_memory *vp_agent_counts_memory(const struct vp_agent_counts *counts);
/* Why it is absent or gone: printable, but may be the guest's own words. */
const char *vp_agent_counts_problem(const struct vp_agent_counts *counts);

#endif
