/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receives the events that the agent of a VM's guest sends, checks them, converts times to the
 * host's clock, and writes them to a CTF trace of the guest. An agent that sends garbage, exits or
 * floods affects only these events.
 */
#ifndef VP_SESSION_GUEST_EVENTS_H
#define VP_SESSION_GUEST_EVENTS_H

#include "base/macros.h"
#include "base/notices.h"
#include "collect/agent/events_client.h"
#include "collect/agent/guest_clock.h"
#include "schema/agent_outcome.h"
#include "xen/xen_counters.h"

struct vp_guest_events;

struct vp_guest_events_options {
	const char *directory; /* of the recording; the string may change in place */
	unsigned port;         /* vsock port of the agents, 0: the default */
	unsigned sets;         /* bits of enum vp_events_set */
	uint64_t max_bytes;    /* limit of one guest's events */
	unsigned compression;  /* zstd level; 0: not compressed */
	size_t flight_bytes; /* size of the flight recorder's memory for them; 0: written to disk */
	vp_notices *notices;
	struct vp_guest_clock *clock;     /* clock shared by all guests */
	struct vp_xen_counters *counters; /* source of Xen guests' counters; NULL: KVM */
};

/* Contacts the VM's agent. Objects in the options must outlive it; `part` is copied. A VM without a
 * reachable agent is not an error; its outcome has the problem. */
struct vp_guest_events *vp_guest_events_new(const struct vp_guest_events_options *options,
					    const struct vp_vm *vm, const char *part);
void vp_guest_events_free(struct vp_guest_events *events);
/* Call once a second while the VM runs: reconnects to an agent that is gone, at growing intervals;
 * true if vp_guest_events_fd() changed. */
bool vp_guest_events_again(struct vp_guest_events *events, const struct vp_vm *vm, uint64_t now);
/* The VM has ended: stops waiting for an agent that has not replied. A vchan does not end with its
 * guest: its agent is left, too. */
void vp_guest_events_give_up(struct vp_guest_events *events);
/* The VM's number in the recording. */
uint32_t vp_guest_events_vm(const struct vp_guest_events *events);
/* A descriptor that is readable when a message has arrived, or -1. */
int vp_guest_events_fd(const struct vp_guest_events *events);
/* Reports its vCPUs and the present differences of their counters to the host's. */
void vp_guest_events_update_vcpu(struct vp_guest_events *events, const struct vp_vm *vm);
/* Receives available data, with a timeout. False: no agent. */
bool vp_guest_events_receive(struct vp_guest_events *events, int timeout_ms);
/* Whether the agent's presence is still unknown. */
bool vp_guest_events_is_asking(const struct vp_guest_events *events);
/* Whether an agent is connected and may send more. */
bool vp_guest_events_is_open(const struct vp_guest_events *events);
/* Starts recording: events before `now` are dropped. */
void vp_guest_events_begin(struct vp_guest_events *events, uint64_t now);
/* Asks the agent for its remaining data; events after `now` are dropped. */
void vp_guest_events_stop(struct vp_guest_events *events, uint64_t now);
/* Writes buffered events. */
void vp_guest_events_flush(struct vp_guest_events *events);
/* Asks the agent to flush; returns whether the reply is pending. */
void vp_guest_events_request_flush(struct vp_guest_events *events);
bool vp_guest_events_flush_pending(const struct vp_guest_events *events);
/* For events in memory: writes those from `from` on to `path`, the guest's part of a recording. */
struct vp_error *vp_guest_events_snapshot(struct vp_guest_events *events, const char *path,
					  uint64_t from) VP_MUST_CHECK;
/* Frees the memory of an ended VM if all its events are older than that time. */
void vp_guest_events_forget(struct vp_guest_events *events, uint64_t reach);
/* Number of recorded events; of lost ones. */
uint64_t vp_guest_events_count(const struct vp_guest_events *events);
uint64_t vp_guest_events_lost(const struct vp_guest_events *events);
/* The outcome, to be deinitialized. */
struct vp_agent_outcome vp_guest_events_outcome(const struct vp_guest_events *events) VP_MUST_CHECK;

#endif
