/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outcome of a request to a guest's agent: stored as numbers, rendered as a sentence. */
#ifndef VP_SCHEMA_AGENT_OUTCOME_H
#define VP_SCHEMA_AGENT_OUTCOME_H

#include <stdint.h>

#include "base/macros.h"
#include "base/vec.h"

/* The numbers of both enums are in recordings: append only. */
enum vp_agent_request {
	VP_AGENT_SYMBOL_MAP,
	VP_AGENT_COUNTS, /* guest:EVENT, for intervals */
	VP_AGENT_EVENTS, /* --trace-guests */
	VP_AGENT_REQUESTS
};

enum vp_agent_status {
	VP_AGENT_SERVED,
	VP_AGENT_TRUNCATED,    /* the symbol map was received in part */
	VP_AGENT_FAILED,       /* reason in `problem`; without one: no reply */
	VP_AGENT_NOT_SELECTED, /* not requested, because of --vm */
	VP_AGENT_STATUSES
};

struct vp_agent_outcome {
	uint32_t request; /* enum vp_agent_request */
	uint32_t status;  /* enum vp_agent_status */
	uint32_t port;    /* vsock port of the agent; 0: over a vchan */
	uint32_t counted; /* bits of enum vp_guest_count */
	uint64_t missing_ns;
	/* For VP_AGENT_EVENTS: events received and lost, invalid entries, maximum error of event
	 * times. */
	uint64_t events, lost, invalid, error_ns;
	char *problem; /* the latest error message, or NULL */
};

typedef VP_VEC(struct vp_agent_outcome) vp_agent_outcomes;

void vp_agent_outcome_deinit(struct vp_agent_outcome *outcome);
/* The outcome as a sentence, "ok: ..." if the request was served; a new string. */
char *vp_agent_outcome_text(const struct vp_agent_outcome *outcome) VP_MUST_CHECK;

#endif
