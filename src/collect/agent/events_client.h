/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receives the kernel events of a guest from its agent (protocol/events_protocol.h). A child
 * process communicates with the agent and converts its data to records; it drops all rights before
 * it reads, and its output is untrusted.
 */
#ifndef VP_COLLECT_AGENT_EVENTS_CLIENT_H
#define VP_COLLECT_AGENT_EVENTS_CLIENT_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "collect/agent/agent_client.h"
#include "protocol/events_protocol.h"

struct vp_agent_events;

/* VP_AGENT_EVENTS_ABSENT: no agent yet; retried. _ENDED: the agent sent its end. */
enum vp_agent_events_state {
	VP_AGENT_EVENTS_ASKED,
	VP_AGENT_EVENTS_ABSENT,
	VP_AGENT_EVENTS_SENDING,
	VP_AGENT_EVENTS_ENDED,
	VP_AGENT_EVENTS_GONE
};

/* Receives the agent's data, which may be malformed. */
struct vp_agent_events_receiver {
	void *context;
	/* Event classes in the text of vp_event_classes_write(); once, before everything else. */
	void (*classes)(void *context, struct vp_slice text);
	void (*tasks)(void *context, const struct vp_events_task *tasks, size_t count);
	/* Times are not the guest's counter; this maps one of them to the counter. */
	void (*clock)(void *context, const struct vp_events_clock *clock);
	/* In a guest of Xen: relation of the vCPU's counter to Xen's time, from now on. */
	void (*time)(void *context, uint32_t vcpu, const struct vp_events_time *time);
	/* Records of these classes; their times are the guest's counter, or those of `clock`. */
	void (*records)(void *context, uint32_t vcpu, char *bytes, size_t size);
	/* Events of the vCPU lost in the guest's buffer since the start. */
	void (*lost)(void *context, uint32_t vcpu, uint64_t count);
	/* Number of entries of unknown classes, malformed entries, and malformed pages. */
	void (*malformed)(void *context, uint64_t count);
};

/* Requests events of these sets (bits of enum vp_events_set). */
struct vp_error *vp_agent_events_start(const struct vp_agent_address *address, unsigned sets,
				       struct vp_agent_events **ret) VP_MUST_CHECK;
/* The same over a connected stream socket, which it takes over. */
struct vp_error *vp_agent_events_start_from(int fd, const char *name, unsigned sets,
					    struct vp_agent_events **ret) VP_MUST_CHECK;
/* Ends the connection, and thereby the agent's tracing. */
void vp_agent_events_free(struct vp_agent_events *events);
/* A descriptor that is readable when a message has arrived. */
int vp_agent_events_fd(const struct vp_agent_events *events);
/* Passes on available data, at most that many bytes, with a timeout. */
enum vp_agent_events_state vp_agent_events_receive(struct vp_agent_events *events, int timeout_ms,
						   size_t most,
						   const struct vp_agent_events_receiver *receiver);
/* Asks the agent to flush, if it supports that. _is_flushing(): the reply is pending, according to
 * the untrusted agent. */
void vp_agent_events_flush(struct vp_agent_events *events);
bool vp_agent_events_is_flushing(const struct vp_agent_events *events);
/* Asks the agent to send its remaining data and stop. */
void vp_agent_events_stop(struct vp_agent_events *events);
/* Why the agent is absent or gone: printable, but possibly the guest's text. */
const char *vp_agent_events_problem(const struct vp_agent_events *events);

#endif
